"""The pages of the spec say what the records say."""

from __future__ import annotations

import pytest

from tools import spec_pages


@pytest.mark.parametrize("page", spec_pages.PAGES)
def test_a_page_is_what_is_made_of_the_records(page: str) -> None:
    text = (spec_pages.ROOT / page).read_text(encoding="utf-8")
    assert spec_pages.made(page) == text, "run python -m tools.spec_pages"


def test_a_page_without_its_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table that begins with"):
        spec_pages._with_table("nothing", "| chapter |", ())
