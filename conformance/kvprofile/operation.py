"""The measured operation of a case, and the job that a subject or a peer does for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from kvprofile.case import Case
from kvprofile.subject import Subject
from kvspec.geometry import Config
from kvspec.traffic import Traffic

ALWAYS = 1 << 60
"""The `most` of jobs that never need a reset."""


class Job(NamedTuple):
    """Work to measure: `do(i)` for i from 0 on. After `most` calls comes `reset`, which is not measured."""

    do: Callable[[int], object]
    most: int = ALWAYS
    reset: Callable[[], None] = lambda: None
    about: Mapping[str, Any] = MappingProxyType({})
    """Choices made for the job, for the record beside the config."""


@dataclass(frozen=True)
class Work:
    """How an operation is measured."""

    config: Callable[[Case], Config]
    traffic: Callable[[Case], Traffic]
    held: Callable[[Case], int]
    """Bytes of rows that one instance holds: a case that does not fit the memory in rotation is left out."""
    job: Callable[[Subject], Job]


@dataclass(frozen=True)
class Operation(Work):
    """An operation to measure. `needs` are the chapters an adapter must declare; the first is the kind to open."""

    name: str
    words: str
    needs: tuple[str, ...]
