"""What is measured of a case: the job that a subject or a peer does, and the operation it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kvconform.profiling.case import Case
from kvconform.profiling.subject import Subject
from kvspec.geometry import Config
from kvspec.traffic import Traffic


class Job(NamedTuple):
    """Something to be measured: `do(i)` for i from 0 on, after `most` of them `reset`, which is not measured."""

    do: Callable[[int], object]
    most: int
    reset: Callable[[], None] = lambda: None
    about: Mapping[str, Any] = MappingProxyType({})
    """What was chosen for it, and belongs into the record beside the config."""


ALWAYS = 1 << 60
"""The `most` of what can go on for ever."""


class Operation(NamedTuple):
    """What can be measured. `needs` are the chapters an adapter must declare; the first is what is opened."""

    name: str
    words: str
    needs: tuple[str, ...]
    config: Callable[[Case], Config]
    traffic: Callable[[Case], Traffic]
    held: Callable[[Case], int]
    """Bytes of rows that one instance of it holds: what does not fit in the memory in rotation is left out."""
    job: Callable[[Subject], Job]
