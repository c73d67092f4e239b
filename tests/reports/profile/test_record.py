"""The record of a profile: schema and types name the same, and what is no such record is refused."""

from __future__ import annotations

import copy
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import to_builtins

from kvreports import json_file
from kvspec.errors import BadInput
from kvspec.records.profile import Profile
from support.samples.profile_samples import SAMPLES, whole

SCHEMA = json.loads(resources.files("kvspec").joinpath("schemas/profile.json").read_text(encoding="utf-8"))
VALID = Draft202012Validator(SCHEMA)
WHOLE = to_builtins(whole())
OPTIONAL = {"form", "in_cache", "limit_bytes", "modes", "on_device"}
"""Fields that are absent where there is nothing to say."""
FREE = {"adapter", "machine", "settings", "config", "metered", "spec", "suite"}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_record_survives_its_file(sample: Any, tmp_path: Path) -> None:
    VALID.validate(to_builtins(sample))
    file = tmp_path / "profile.json"
    file.write_text(json_file.dumps(sample))
    assert json_file.load(file, Profile) == sample and json_file.begins(file, Profile)


@pytest.mark.parametrize("part", [SCHEMA, *SCHEMA["$defs"].values()], ids=lambda part: str(part["title"]))
def test_every_part_of_it_knows_its_fields_and_no_other(part: Any) -> None:
    assert part["additionalProperties"] is False
    assert [name for name in part["properties"] if name not in OPTIONAL] == part["required"]


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


@pytest.mark.parametrize("path", [p for p in places(WHOLE) if p], ids=lambda p: ".".join(map(str, p)))
def test_wrong_types_are_refused_by_schema_and_loading_alike(path: tuple[Any, ...]) -> None:
    wrong = copy.deepcopy(WHOLE)
    at = wrong
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = 7 if isinstance(at[path[-1]], str) else "text"
    assert not VALID.is_valid(wrong)
    with pytest.raises(BadInput):
        json_file.from_json(wrong, Profile)


@pytest.mark.parametrize("document", [[], {}, {"kvrecord": 2}, WHOLE | {"kvprofile": 1}, WHOLE | {"more": 1}])
def test_other_documents_are_refused(document: Any) -> None:
    with pytest.raises(BadInput):
        json_file.from_json(document, Profile)
