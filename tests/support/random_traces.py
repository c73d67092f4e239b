"""Random traces of a chapter on caches of this process: they must observe what the reference does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from kvconform.generate.strategies import sample
from kvconform.judge import trial
from kvspec.contract import Level, description
from kvspec.notation import sentence
from kvspec.session.driver import Session
from kvspec.trace import Trace


@cache
def drawn(explored: Callable[..., Any], *arguments: Any, count: int) -> list[Trace]:
    """Traces of a chapter's strategy, the same for every runtime."""
    return sample.some(explored(*arguments), count, seed=1)


def observe_the_same(adapter: Any, traces: list[Trace], level: Level = "storage") -> None:
    """Judge an adapter at a level."""
    about = description(adapter.describe())
    for trace in traces:
        session = Session(adapter, trial.observables(trace, about, level))
        seen = trial.run(trace, session, about, level)
        assert not seen.failed, (sentence(trace), [d.message for d in seen.differences])
