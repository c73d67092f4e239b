"""A trial that went over the limit of memory: one operation takes too much, or what operations keep adds up.

An operation that takes more than half of the growth by itself is to blame, as one that crashes is. Where it adds
up, no clause speaks of it: what was answered is judged, and the record says why the rest was not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kvconform.judge.lockstep import Performs
from kvconform.judge.trial_result import TrialResult
from kvspec.geometry import Config
from kvspec.operations.table import Operation, length_of, parts_of
from kvspec.session.step import NOTHING, Inputs, Step

OPENING = "open"

WHAT_TO_DO = (
    "What was answered until then was judged, and no clause is blamed. See what the engine keeps, or allow more: "
    "--memory MIB"
)


class OneByOne:
    """A session that is asked for an operation only once the one before it is answered."""

    def __init__(self, session: Performs) -> None:
        self._session = session

    def begin(self, kind: str, config: Config) -> Step:
        """Open cache A."""
        return self._session.begin(kind, config)

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation."""
        return self._session.do(op, inputs)


def last(seen: TrialResult) -> str:
    """The operation in which a trial ended."""
    return OPENING if seen.begun.result != "ok" else str(_done(seen)[-1]["op"])


def adds_up(seen: TrialResult, used: Sequence[int]) -> bool:
    """Tell whether the memory that operations keep adds up to too much. `used` has the resident bytes once cache A
    was opened, and after each operation. False if the last operation takes most of it by itself."""
    if len(used) < 2 or len(used) != len(seen.steps) + 1:
        return False
    each = (used[-1] - used[-2]) / length_of(_done(seen)[-1])
    return each <= (used[-1] - used[0]) / 2


def up_to_the_limit(seen: TrialResult, used: Sequence[int], limit: int) -> TrialResult:
    """Give what the operations before the limit showed, and say which operation keeps most. Its bytes are told as a
    power of two, so that traces which keep about as much give one problem of the record."""
    grown, times = Counter[str](), Counter[str]()
    for op, before, after in zip(_done(seen), used, used[1:], strict=False):
        name = parts_of(op)[-1]["op"]
        grown[name] += after - before
        times[name] += length_of(op)
    ((most, by),) = grown.most_common(1)
    kept = f"{most}, about {_about(by // times[most])} each"
    why = (
        f"memory: the limit of {limit >> 20} MiB was reached in one trace, by what operations keep (most by {kept})"
    )
    return replace(seen, steps=seen.steps[:-1], differences=[], session=None, over_memory=f"{why}. {WHAT_TO_DO}")


def _done(seen: TrialResult) -> Sequence[Operation]:
    return seen.trace.ops[: len(seen.steps)]


def _about(size: int) -> str:
    """Bytes, as a power of two."""
    power = max(10, round(math.log2(max(size, 1))))
    return f"{1 << power - 20} MiB" if power >= 20 else f"{1 << power - 10} KiB"
