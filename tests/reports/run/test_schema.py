"""Sample records are valid, by the published schema and by the check that loading makes; the two cannot drift."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kvreports import typed_dict_check
from kvreports.run import file as run_file
from kvspec.errors import BadInput
from kvspec.records.run import (
    VERDICTS,
    VERSION,
    ClauseRecord,
    Coverage,
    DrawnStep,
    Failure,
    Fits,
    Named,
    Observation,
    Record,
    Residency,
)
from support.record_samples import SAMPLES, failing

SCHEMA = json.loads(resources.files("kvspec").joinpath("schemas/record.json").read_text(encoding="utf-8"))
validator = Draft202012Validator


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda r: r["adapter"]["name"])
def test_samples_satisfy_the_published_schema_and_loading(sample: Any) -> None:
    validator(SCHEMA).validate(sample)
    assert run_file.from_json(sample) is sample


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "kvconform:record"


PARTS = {
    "seen": Observation,
    "step": DrawnStep,
    "failure": Failure,
    "named": Named,
    "fits": Fits,
    "clause": ClauseRecord,
    "coverage": Coverage,
    "residency": Residency,
}


@pytest.mark.parametrize(("part", "wanted"), [(None, Record), *PARTS.items()])
def test_schema_and_types_name_the_same_fields(part: str | None, wanted: Any) -> None:
    schema = SCHEMA if part is None else SCHEMA["$defs"][part]
    known = typed_dict_check.fields(wanted)
    assert list(schema["properties"]) == list(known)
    assert schema["required"] == [name for name, (_, required) in known.items() if required]
    assert schema["additionalProperties"] is False


def test_schema_and_types_agree_on_verdicts_and_version() -> None:
    assert SCHEMA["$defs"]["verdict"]["enum"] == list(VERDICTS)
    assert SCHEMA["properties"]["kvrecord"] == {"const": VERSION}


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


@pytest.mark.parametrize("path", [p for p in places(failing()) if p], ids=lambda p: ".".join(map(str, p)))
def test_wrong_types_are_refused_by_schema_and_loading_alike(path: tuple[Any, ...]) -> None:
    wrong = put(failing(), path, object.__name__ if not isinstance(_get(failing(), path), str) else 7)
    assert not validator(SCHEMA).is_valid(wrong)
    with pytest.raises(BadInput):
        run_file.from_json(wrong)


def _get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
