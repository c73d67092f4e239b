"""Rules of a scheduler's bookkeeping, each broken by a patch, and the lives in which this must show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.serving.lives import Life
from kvconform.steps.verdict import Verdict, judged

Patch = pytest.MonkeyPatch
Rule = Callable[[Patch], None]


def around(patch: Patch, owner: Any, name: str, planted: Callable[..., Any]) -> None:
    """Put a function in the place of one that it gets first."""
    right = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **more: planted(right, *args, **more))


LIVES = 50
"""Lives of 150 steps in which a broken rule must show."""


def counted(life: Callable[..., Life], log: Path, shape: str, lives: int, steps: int, **fixed: Any) -> Counter[str]:
    """Count what is in the logs of lives of a scheduler that is right. Fails if one breaks a clause."""
    seen = Counter[str]()
    for seed in range(lives):
        one = life(seed, log, shape, **fixed)
        one.live(steps)  # what the scheduler notices itself fails too
        verdict = judged(log)
        assert verdict.broken is None, (seed, verdict.broken)
        seen += verdict.counts
    return seen


def first_broken(life: Callable[..., Life], log: Path, shape: str, **fixed: Any) -> tuple[int, Verdict | None]:
    """Live until a life of a broken scheduler breaks a clause: give its number, from 1 on, and the verdict; 0 and
    None if no life does."""
    for seed in range(LIVES):
        verdict = life(seed, log, shape, **fixed).judged(log, 150)
        if verdict.broken:
            return seed + 1, verdict
    return 0, None


def demand_found(life: Callable[..., Life], log: Path, shape: str, clauses: tuple[str, ...], **fixed: Any) -> None:
    """Fail unless one of the lives of a broken scheduler breaks a clause, and the first one breaks one of these."""
    lives, verdict = first_broken(life, log, shape, **fixed)
    if verdict is None or verdict.broken is None:
        pytest.fail(f"no life of {LIVES} shows it")
    print(lives, verdict.broken)
    assert verdict.broken.clause in clauses, verdict.broken
