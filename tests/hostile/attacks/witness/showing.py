"""Finds a trace that shows an attack, and makes it short."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np

from hostile.attacks.grammar import Attack
from hostile.attacks.judging import Noting
from hostile.attacks.witness.config import sizes
from hostile.attacks.witness.drawing import drawn
from kvconform.bugs.time_limit import Hang, time_limit
from kvconform.generate.claims.fit_to_adapter import suits
from kvconform.judge import trial
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.contract import Description, description
from kvspec.errors import BadInput
from kvspec.notation import from_sentence, sentence
from kvspec.session.driver import Session
from kvspec.session.step import Step
from kvspec.trace import Trace

TRIES, SECONDS = 100, 6.0
"""Traces that are drawn for an attack, and the time of the processor that may go into them."""


def differs(attack: Attack, trace: Trace, about: Description) -> int:
    """The operations of a trace until the attack answers otherwise than its base; 0 if it does not."""
    observed = trial.observables(trace, about, trial.level_of(trace, about))
    wrong = Noting(attack.adapter(), observed)
    found = answers(wrong, trace)
    right = answers(Session(attack.base.make(), observed), trace) if wrong.adapter.struck else []
    return next((i for i, pair in enumerate(zip(found, right, strict=False)) if pair[0] != pair[1]), 0)


def answers(session: Session, trace: Trace) -> list[Any]:
    """What a session shows at the opening and after each operation."""
    inputs, shown = TraceInputs(trace), [told(session.begin(trace.kind, trace.config))]
    for op in trace.ops:
        step = session.do(op, inputs.make(op))
        shown.append(told(step))
        inputs.done(op, step.result)
    return shown


def told(step: Step) -> Any:
    """What a step shows, in a form that can be compared."""
    arrays = {n: None if a is None else (np.shape(a), np.asarray(a).tobytes()) for n, a in step.arrays.items()}
    return step.result in ("ok", "any"), sorted(step.values.items(), key=str), arrays


def found(attack: Attack, tries: int = TRIES) -> Trace | None:
    """The first of some traces that shows an attack, without the operations that it does not need; None where none
    does in the time that there is."""
    about, asked, random = description(attack.base.make().describe()), sizes(attack), Random(attack.id)
    drawn_ = (drawn(attack, asked, random, about.chapters) for _ in range(tries))
    showing: Trace | None = None
    try:
        with time_limit(SECONDS):
            for trace in (t for t in drawn_ if t is not None and suits(t, about)):
                if n := differs(attack, trace, about):
                    showing = trace.cut(n)
                    showing = shortened(showing, partial(differs, attack, about=about))
                    break
    except Hang:
        pass
    return showing


def shortened(trace: Trace, shows: Any) -> Trace:
    """The trace without each operation that can be left out."""
    i = len(trace.ops) - 2
    while i >= 0:
        less = Trace(trace.kind, trace.config, (*trace.ops[:i], *trace.ops[i + 1 :]))
        if written(less) and (n := shows(less)):
            trace = less.cut(n)
        i = min(i, len(trace.ops)) - 1
    return trace


def written(trace: Trace) -> bool:
    """Tell whether a trace can be written: it names nothing that is not there."""
    try:
        return from_sentence(sentence(trace)) == trace
    except BadInput:
        return False


NONE = "no difference"


def verdict(attack: Attack, trace: Trace) -> str:
    """What the suite's judge says of an attack on a trace."""
    base: Any = attack.adapter()
    seen = trial.on(trace, partial(Session, base), description(base.describe()))
    return f"{', '.join(seen.blamed)}: {seen.differences[0].message}" if seen.failed else NONE


__all__ = ["NONE", "found", "sentence", "verdict"]
