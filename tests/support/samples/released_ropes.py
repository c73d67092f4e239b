"""Scalings of RoPE that released models have, and what transformers computes for them, as it was frozen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kvspec.contract import Rope
from kvspec.geometry import Array
from kvspec.rope_scaling import parsed
from kvspec.tables import table

HERE = Path(__file__).parent
FROZEN = HERE / "rope_tables.json"
"""What `python -m tools.rope_tables --write` froze."""


class Released(NamedTuple):
    """A released model: how its rows are turned, and what its config says of that."""

    name: str
    dims: int
    scaling: str
    context: int
    length: int
    parameters: dict[str, Any]

    @property
    def rope(self) -> Rope:
        """As this spec has it."""
        return Rope("neox", int(self.parameters["rope_theta"]), None, parsed(self.scaling))

    @property
    def calls(self) -> tuple[tuple[int, ...], ...]:
        """The positions of each call: of a short prompt, and of a long one; up to one length, if there is one."""
        if self.length:
            return ((0, 1, 4095, self.length - 1),)
        return (0, 1, 2047, 4095), (1, 4096, 8192, self.context - 1)


def _released(name: str, row: dict[str, Any]) -> Released:
    told = row["parameters"]
    lists = {key: ",".join(map(repr, value)) for key, value in told.items() if isinstance(value, list)}
    return Released(name, row["dims"], row["scaling"].format(**lists), row["context"], row.get("length", 0), told)


RELEASED = tuple(_released(*row) for row in table("support.samples", "released_ropes").items())
"""All of them."""


class Call(NamedTuple):
    """What transformers computed for the positions `[n]` of a call."""

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
