"""RoPE: key rows rotated without a cache."""

from __future__ import annotations

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.subject import Subject
from kvspec import traffic
from kvspec.contract import Rope
from kvspec.geometry import Config


def rotate(subject: Subject) -> Job:
    """Rotate rows `[1, kv_heads, n, dim]` into new ones: the same positions for all layers of a model, then the
    next n."""
    case, model = subject.case, subject.case.model
    sources = [keys for (keys,) in subject.several(subject.shapes(case.rows)[:1])]
    rope = Rope(case.pairing or "neox")

    def do(i: int) -> object:
        first = case.context + i // model.layers * case.rows
        return subject.adapter.rotate(sources[i % len(sources)], np.arange(first, first + case.rows), rope)

    return Job(do, about={"pairing": rope.pairing})


def _config(case: Case) -> Config:
    return case.config(batch=case.batch)


def _traffic(case: Case) -> traffic.Traffic:
    return traffic.turned(_config(case), case.rows)


WORK = {"rotate": Work(_config, _traffic, lambda case: _traffic(case).bytes, rotate)}
