"""The guides for contributors: short, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.running.command_line import kvconform
from tools.floors import PACKAGES, ROOT

GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROOMS = [ROOT, *(ROOT / package for package in PACKAGES), *(ROOT / Path(package).parent for package in PACKAGES)]
"""Where the paths of guides begin: with a package, or inside one."""


def test_the_first_page_is_short_and_leads_to_every_guide() -> None:
    assert len(CONTRIBUTING.split()) <= 300
    assert {f"docs/guides/{guide.name}" for guide in GUIDES} <= set(re.findall(r"\]\(([^)#]+)\)", CONTRIBUTING))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_is_a_screen_and_names_what_there_is(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 50
    named = [
        path for path in re.findall(r"`([\w./-]+/[\w./-]+)`", text) if not re.search("NAME|kvconform-report", path)
    ]
    assert [path for path in named if not any((room / path).exists() for room in ROOMS)] == []


def test_the_append_that_is_followed_is_judged_as_its_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # whose docs/examples holds the adapter
    page = (ROOT / "docs/guides/follow-an-append.md").read_text(encoding="utf-8")
    (trace,) = re.findall(r"kvconform replay '([^']+)'", page)
    seen = kvconform("replay", trace, "--adapter", "docs.examples.stale_cursor:Adapter")
    assert seen.returncode == 1 and "slot 0, head 0 holds row c; expected row a" in " ".join(page.split())
    assert "RING-1, RING-26, RING-22: history.k: slot 0, head 0 holds row c; expected row a" in seen.stdout
