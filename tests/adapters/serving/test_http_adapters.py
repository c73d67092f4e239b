"""How servers are asked for an adapter: by the name of a model, or by scales of all that are loaded."""

from __future__ import annotations

import json

import pytest

from kvadapters.serving import http_adapters

LOADED = [{"id": 0, "path": "/p/adapters/y.gguf", "scale": 1.0}, {"id": 1, "path": "x.gguf", "scale": 1.0}]


def test_an_adapter_that_is_listed_among_the_models_is_asked_as_one() -> None:
    found = http_adapters.fields(["probe", "x", "y"], "")
    assert found == {"x": {"model": "x"}, "y": {"model": "y"}}


def test_one_that_llama_cpp_lists_is_asked_by_scales_and_none_by_zeros() -> None:
    found = http_adapters.fields(["probe"], json.dumps(LOADED))
    scales = {name: [each["scale"] for each in said["lora"]] for name, said in found.items()}
    assert scales == {"": [0.0, 0.0], "x": [0.0, 1.0], "y": [1.0, 0.0]}


@pytest.mark.parametrize("listed", ["", "{", "{}", "[1]", '[{"id": "a", "path": "x"}]', json.dumps(LOADED[:1])])
def test_a_server_without_both_has_none(listed: str) -> None:
    assert http_adapters.fields(["probe", "x"], listed) == {}
