"""The record of a profile: schema and types name the same, and what is no such record is refused."""

from __future__ import annotations

import copy
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kvreports import typed_dict_check
from kvreports.profile import file as profile_file
from kvreports.run import file as run_file
from kvspec.errors import BadInput
from kvspec.records import profile
from support.profile_samples import SAMPLES, whole

SCHEMA = json.loads(resources.files("kvspec").joinpath("schemas/profile.json").read_text(encoding="utf-8"))
VALID = Draft202012Validator(SCHEMA)
FREE = {"adapter", "machine", "settings", "config", "metered", "spec", "suite"}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_record_survives_its_file(sample: Any, tmp_path: Path) -> None:
    VALID.validate(sample)
    file = tmp_path / "profile.json"
    file.write_text(profile_file.dumps(sample))
    assert profile_file.load(file) == sample and run_file.begins(file, profile_file.MARK)


PARTS = {
    "spread": profile.Spread,
    "limit": profile.LimitRecord,
    "time": profile.PeerTime,
    "peer": profile.PeerRecord,
    "measurement": profile.Measurement,
    "skipped": profile.Skipped,
}


@pytest.mark.parametrize(("part", "wanted"), [(None, profile.Profile), *PARTS.items()])
def test_schema_and_types_name_the_same_fields(part: str | None, wanted: Any) -> None:
    schema = SCHEMA if part is None else SCHEMA["$defs"][part]
    known = typed_dict_check.fields(wanted)
    assert list(schema["properties"]) == list(known) == schema["required"]
    assert schema["additionalProperties"] is False


def test_nothing_in_it_is_a_verdict() -> None:
    words = json.dumps(SCHEMA).lower().replace("nothing in it is a verdict", "")
    assert not [w for w in ("pass", "fail", "verdict", "threshold", "target") if w in words]


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    if isinstance(value, dict) and not FREE & {*path[-1:]}:
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    if isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


@pytest.mark.parametrize("path", [p for p in places(whole()) if p], ids=lambda p: ".".join(map(str, p)))
def test_wrong_types_are_refused_by_schema_and_loading_alike(path: tuple[Any, ...]) -> None:
    wrong = copy.deepcopy(whole())
    at = wrong
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = 7 if isinstance(at[path[-1]], str) else "text"
    assert not VALID.is_valid(wrong)
    with pytest.raises(BadInput):
        profile_file.from_json(wrong)


@pytest.mark.parametrize("document", [[], {}, {"kvrecord": 2}, whole() | {"kvprofile": 1}, whole() | {"more": 1}])
def test_other_documents_are_refused(document: Any) -> None:
    with pytest.raises(BadInput):
        profile_file.from_json(document)
