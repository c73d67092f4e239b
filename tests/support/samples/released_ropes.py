"""Scalings of RoPE that released models have, and what transformers computes for them, as it was frozen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kvspec.contract import Rope
from kvspec.geometry import Array
from kvspec.rope import sections as rope_sections
from kvspec.rope.scaling import parsed
from kvspec.tables import table

HERE = Path(__file__).parent
FROZEN = HERE / "rope_tables.json"
"""What `python -m tools.rope_tables --write` froze."""


LLAMA = "llama", "LlamaConfig", "LlamaRotaryEmbedding"


class Released(NamedTuple):
    """A released model: how its rows are turned, and what its config says of that."""

    name: str
    dims: int
    scaling: str
    context: int
    length: int
    parameters: dict[str, Any]
    sections: str | None
    model: tuple[str, str, str]
    """The module of transformers, the class of its config, and that of its RoPE."""

    @property
    def rope(self) -> Rope:
        """As this spec has it."""
        base, sections = int(self.parameters["rope_theta"]), rope_sections.parsed(self.sections)
        return Rope("neox", base, None, parsed(self.scaling), sections)

    @property
    def calls(self) -> tuple[Any, ...]:
        """The positions of each call: of a short prompt, and of a long one; up to one length, if there is one. With
        sections an image early and one late, and text."""
        if self.sections:
            image = (0, 0, 0, 0), (0, 0, 1, 2), (0, 1, 0, 3)
            return *(tuple(tuple(at + p for p in axis) for axis in image) for at in (5, 32_000)), ((7, 4095),) * 3
        if self.length:
            return ((0, 1, 4095, self.length - 1),)
        return (0, 1, 2047, 4095), (1, 4096, 8192, self.context - 1)


def _released(name: str, row: dict[str, Any]) -> Released:
    told = row["parameters"]
    lists = {key: ",".join(map(repr, value)) for key, value in told.items() if isinstance(value, list)}
    scaling, model = row["scaling"].format(**lists), tuple(row.get("model", LLAMA))
    length, sections = row.get("length", 0), row.get("sections")
    return Released(name, row["dims"], scaling, row["context"], length, told, sections, model)


RELEASED = tuple(_released(*row) for row in table("support.samples", "released_ropes").items())
"""All of them."""


class Call(NamedTuple):
    """What transformers computed for the positions of a call, `[n]`, or `[3, n]` with sections."""

    positions: Array
    cosines: Array
    """`[n, dims / 2]` in f32, as the sines."""
    sines: Array


def frozen(name: str) -> list[Call]:
    """What was frozen of a model."""
    told = json.loads(FROZEN.read_text(encoding="utf-8"))["models"][name]
    return [Call(np.array(c["positions"]), _f32(c["cosines"]), _f32(c["sines"])) for c in told]


def _f32(numbers: list[list[float]]) -> Array:
    return np.array(numbers, np.float32)
