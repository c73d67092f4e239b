"""The published schemas are what the code makes of its tables and its records."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from tools import schemas as published


@pytest.mark.parametrize("name", published.SCHEMAS)
def test_what_is_published_is_what_the_code_makes(name: str) -> None:
    """`python -m tools.schemas` publishes them again."""
    assert published.path(name).read_text(encoding="utf-8") == published.text(name)


@pytest.mark.parametrize("name", published.SCHEMAS)
def test_each_is_a_schema_with_its_name(name: str) -> None:
    schema = json.loads(published.text(name))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"kvconform:{name}"
