"""`spec/WIRE.md`: its transcript is what is sent, its numbers are those of the code, its files exist."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
import referencing

from kvspec.operations.table import OF_KIND
from kvspec.registry import CACHES
from kvspec.wire import framing, messages
from tools import schemas as published
from tools import wire_transcript

TEXT = wire_transcript.PAGE.read_text(encoding="utf-8")


def test_the_transcript_is_what_is_sent() -> None:
    assert wire_transcript.written(TEXT) == TEXT, "run python -m tools.wire_transcript"


def headers(mark: str) -> list[dict[str, Any]]:
    lines = [line for line in TEXT.splitlines() if line.startswith(f"    {mark} ")]
    return [json.loads(line[6:].partition("   + ")[0]) for line in lines]


@pytest.mark.parametrize(("mark", "schema"), [(">", "question"), ("<", "answer")])
def test_each_header_of_the_transcript_follows_its_schema(mark: str, schema: str) -> None:
    texts = {name: json.loads(published.text(name)) for name in ("question", "answer", "describe")}
    registry = referencing.Registry().with_contents((t["$id"], t) for t in texts.values())
    validator = jsonschema.Draft202012Validator(texts[schema], registry=registry)
    assert len(headers(mark)) > 10
    for header in headers(mark):
        validator.validate(header)


def test_the_transcript_shows_every_result_but_an_error() -> None:
    assert {header["result"] for header in headers("<")} == set(messages.RESULTS) - {"error"}


def test_its_numbers_are_those_of_the_code() -> None:
    assert framing.LARGEST_HEADER == 1 << 20 and "less than 1 MiB" in TEXT
    assert framing.LARGEST_TENSORS == 256 << 20 and "at most 256 MiB" in TEXT
    assert f"at most {framing.MOST_TENSORS} of them" in TEXT
    assert f"nests at most {framing.DEEPEST} deep" in TEXT
    assert all(f"`{dtype}`" in TEXT for dtype in framing.TYPES)
    assert all(f"| `{result}` |" in TEXT for result in messages.RESULTS)


def test_it_tells_the_operations_of_every_cache() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert {"append", "view", "ask", "rewind", "free", "scribble", "open"} <= told
    assert all(told - {"describe", "begin", *messages.RESULTS, *framing.TYPES} <= OF_KIND[kind] for kind in CACHES)


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(links) > 5
    assert [link for link in links if not (wire_transcript.PAGE.parent / link).exists()] == []
