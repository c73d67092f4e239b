"""Sample records are valid, by the published schema and by the check that loading makes; the two cannot drift."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import to_builtins

from kvreports import json_file
from kvspec.errors import BadInput
from kvspec.records.run import VERDICTS, VERSION, Record
from support.samples.record_samples import SAMPLES, failing

SCHEMA = json.loads(resources.files("kvspec").joinpath("schemas/record.json").read_text(encoding="utf-8"))
FAILING = to_builtins(failing())
validator = Draft202012Validator


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda r: r.adapter["name"])
def test_samples_satisfy_the_published_schema_and_loading(sample: Any) -> None:
    document = to_builtins(sample)
    validator(SCHEMA).validate(document)
    assert json_file.from_json(document, Record) == sample and to_builtins(sample) == document


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "kvconform:record"


@pytest.mark.parametrize("part", [SCHEMA, *SCHEMA["$defs"].values()], ids=lambda part: str(part["title"]))
def test_every_part_of_it_knows_its_fields_and_no_other(part: Any) -> None:
    assert part["additionalProperties"] is False and set(part["required"]) <= set(part["properties"])
    assert part["description"]


def test_schema_and_types_agree_on_verdicts_and_version() -> None:
    for part in ("ClauseRecord", "Failure"):
        assert SCHEMA["$defs"][part]["properties"]["verdict"]["enum"] == sorted(VERDICTS)
    assert SCHEMA["properties"]["summary"]["propertyNames"] == {"enum": list(VERDICTS)}
    assert SCHEMA["properties"]["kvrecord"] == {"enum": [VERSION]}


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """Every place of a record whose shape is not free."""
    yield path
    if isinstance(value, dict) and not {"adapter", "machine", "selection", "vectors", "trace", "other"} & {
        *path[-1:]
    }:
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    if isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def put(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(record)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize("path", [p for p in places(FAILING) if p], ids=lambda p: ".".join(map(str, p)))
def test_wrong_types_are_refused_by_schema_and_loading_alike(path: tuple[Any, ...]) -> None:
    wrong = put(FAILING, path, object.__name__ if not isinstance(_get(FAILING, path), str) else 7)
    assert not validator(SCHEMA).is_valid(wrong)
    with pytest.raises(BadInput):
        json_file.from_json(wrong, Record)


def _get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
