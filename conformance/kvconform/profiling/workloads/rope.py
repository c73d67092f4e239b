"""RoPE: key rows rotated without a cache."""

from __future__ import annotations

import numpy as np

from kvconform.profiling.case import Case
from kvconform.profiling.operation import Job, Operation
from kvconform.profiling.subject import Subject
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


OPERATIONS = (
    Operation(
        "rotate",
        "key rows turned by RoPE, into new ones",
        ("rope",),
        _config,
        lambda case: traffic.turned(_config(case), case.rows),
        lambda case: traffic.turned(_config(case), case.rows).bytes,
        rotate,
    ),
)
