"""Mutants that no trace can find, each with the reason. They stand in the tables beside this file."""

from __future__ import annotations

import re
from functools import cache

from kvspec.tables import table

TABLES = ("reference", "gpu_caches", "gpu_stores", "kernels")


@cache
def arguments() -> dict[tuple[str, str], str]:
    """Why nothing can find a mutant, by its label and the rest of its id."""
    return {key: why for name in TABLES for key, why in _read(name).items()}


def _read(name: str) -> dict[tuple[str, str], str]:
    labels: dict[str, dict[str, str]] = table(__name__, name)
    reasons = labels.pop("reasons")
    return {(label, rest): reasons.get(why, why) for label, rows in labels.items() for rest, why in rows.items()}


def key(id_: str) -> tuple[str, str]:
    """The label of a mutant, and the rest of its id: `gpu/ring` and `keep: lost: return`."""
    label, rest = re.split(r"\.|: ", id_, maxsplit=1)
    return label, rest


def argument(id_: str, name: str) -> str:
    """Why nothing can find a mutant of this id, or of this name without its number, or empty where a trace must."""
    return arguments().get(key(id_)) or arguments().get(key(name), "")
