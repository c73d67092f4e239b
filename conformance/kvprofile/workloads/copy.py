"""Copies into a preallocated buffer, with and without a cast."""

from __future__ import annotations

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.subject import Subject
from kvspec import traffic
from kvspec.geometry import Config


def _config(case: Case) -> Config:
    return case.config(capacity=case.context, layout=case.layout)


def _source(case: Case) -> str:
    return case.source or case.dtype


def copy(subject: Subject) -> Job:
    """Copy rows `[n, kv_heads, dim]` into the slots of a buffer, one run behind the other."""
    case, model = subject.case, subject.case.model
    sources = subject.several([(case.rows, model.kv_heads, model.dim)] * 2, _source(case))
    buffers = [subject.open("copy") for _ in range(subject.turns(case.context))]
    runs = case.context // case.rows

    def do(i: int) -> None:
        at = i // len(buffers) % runs * case.rows
        buffers[i % len(buffers)].copy(*sources[i % len(sources)], case.rows, at, False)

    return Job(do, len(buffers) * runs)


def _traffic(case: Case) -> traffic.Traffic:
    return traffic.cast(_config(case), _source(case), case.rows)


WORK = {"copy": Work(_config, _traffic, lambda case: case.context * _config(case).row_bytes, copy)}
