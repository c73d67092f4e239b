"""The laws of attention: two traces each, whose outputs are alike, to the bit at level storage, else within bounds.

What is compared are the outputs of all attends of a trace, one behind the other; of sequence 0, where only one side
has others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st

from kvconform.judge.trial import Outcome
from kvconform.oracle.follow import expected
from kvspec.geometry import Array, Config
from kvspec.operations.notation import operation
from kvspec.operations.table import ATTENTION
from kvspec.trace import Trace

Traces = tuple[Trace, Trace]


def _trace(profile: str, config: Config, texts: Sequence[str]) -> Trace:
    return Trace(profile, config, tuple(map(operation, texts)))


def _before(draw: st.DrawFn) -> list[str]:
    """Rows to begin with, up to beyond the end of a tile."""
    n = draw(st.sampled_from((0, 1, 3, 29, 31, 32, 33, 65)))
    return [f"append {n} fill=random"] if n else []


def _asked(draw: st.DrawFn, config: Config) -> str:
    heads = config.kv_heads * draw(st.sampled_from((1, 2, 4)))
    return f"heads={heads} queries={draw(st.sampled_from(('random', 'random', 'huge', 'tiny')))}"


def _mask(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(("", f" through causal & window={draw(st.integers(1, 40))}")))


def at_once(draw: st.DrawFn, config: Config) -> Traces:
    """n queries in one attend, or one by one."""
    before, n, asked, mask = _before(draw), draw(st.integers(1, 5)), _asked(draw, config), _mask(draw)
    splits = draw(st.integers(1, 3))
    left = [*before, f"attend {n} {asked} splits={splits}{mask}"]
    right = [*before, *[f"attend 1 {asked} splits={splits}{mask}"] * n]
    profile = "ring" if config.window else "growing"
    return _trace(profile, config, left), _trace(profile, config, right)


def window(draw: st.DrawFn, config: Config) -> Traces:
    """A ring, or a growing cache through its window."""
    width = config.window or draw(st.integers(1, 40))
    sizes, asked = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)), _asked(draw, config)
    before = _before(draw)
    left = [*before, *(f"attend {n} {asked}" for n in sizes)]
    right = [*before, *(f"attend {n} {asked} through causal & window={width}" for n in sizes)]
    return _trace("ring", config.changed(window=width), left), _trace("growing", config.changed(window=None), right)


def hidden(draw: st.DrawFn, config: Config) -> Traces:
    """Rows that are dropped again, or out of the window, of arbitrary bits or of numbers."""
    dead, asked = draw(st.integers(1, 5)), _asked(draw, config)
    back = ["append 2 fill=random", "append {n} fill={fill}", "rewind 2"]
    past = ["append {n} fill={fill}", f"append {config.window} fill=random"]
    texts = past if config.window and (config.window < dead + 2 or draw(st.booleans())) else back
    profile, end = "ring" if config.window else "growing", [f"attend 1 {asked}", f"attend 3 {asked}"]
    made = ([*(x.format(n=dead, fill=fill) for x in texts), *end] for fill in ("bits", "random"))
    left, right = (_trace(profile, config, each) for each in made)
    return left, right


def splits(draw: st.DrawFn, config: Config) -> Traces:
    """One split, or several."""
    before, asked, mask = _before(draw), _asked(draw, config), _mask(draw)
    profile = "ring" if config.window else "growing"
    n, several = draw(st.integers(1, 3)), draw(st.integers(2, 9))
    made = ([*before, f"attend {n} {asked} splits={each}{mask}"] for each in (1, several))
    left, right = (_trace(profile, config, each) for each in made)
    return left, right


def alone(draw: st.DrawFn, config: Config) -> Traces:
    """A sequence among others, or by itself."""
    room = config.max_len or 1
    stored, m, asked = draw(st.integers(1, room)), draw(st.integers(2, 4)), _asked(draw, config)
    lengths = [draw(st.integers(0, stored)) for _ in range(m)]
    begin, layer = f"append {stored} fill=random", draw(st.integers(0, (config.layers or 1) - 1))
    end = f"attendbatch {layer} {asked} splits={draw(st.integers(1, 2))}"
    left = [begin, f"batch {m}", *(f"scatter {s} {n}" for s, n in enumerate(lengths)), end]
    right = [begin, "batch 1", f"scatter 0 {lengths[0]}", end]
    return _trace("store", config, left), _trace("store", config, right)


def concerns(trace: Trace) -> bool:
    """Whether a law of attention made a trace."""
    return any(op["op"] in ATTENTION for op in trace.ops)


def differ(sides: Sequence[Trace], seen: Sequence[Outcome]) -> str:
    """How the outputs of the two sides differ; empty if they do not."""
    for trace, outcome in zip(sides, seen, strict=True):
        if len(outcome.steps) < len(trace.ops):
            return f"a side failed at step {len(outcome.steps)}"
    found = [_joined(step.arrays.get("output") for _, step in outcome.steps) for outcome in seen]
    least = min(f.shape[0] for f in found)
    left, right = (f[:least] for f in found)
    exact = all(outcome.level == "storage" for outcome in seen) and len({_splits(trace) for trace in sides}) == 1
    wrong = np.argwhere(_unlike(left, right) if exact else ~_near(left, right, sides, least))
    if not len(wrong):
        return ""
    at = tuple(wrong[0])
    where = [int(i) for i in at]
    return f"at {where} the left side's output is {left[at]:.9g}, the right side's {right[at]:.9g}"


def _joined(outputs: Iterator[Array | None]) -> Array:
    return np.concatenate([o for o in outputs if o is not None], axis=2)


def _splits(trace: Trace) -> tuple[int, ...]:
    return tuple({op.get("splits", 1) for op in trace.ops})


def _unlike(left: Array, right: Array) -> Array:
    """Where bits differ, all NaN being alike."""
    return np.asarray((left.view(np.uint32) != right.view(np.uint32)) & ~(np.isnan(left) & np.isnan(right)))


def _near(left: Array, right: Array, sides: Sequence[Trace], least: int) -> Array:
    """Where the two are no further apart than the bounds of both; anywhere that nothing is bounded."""
    bounds = sum(_joined(iter(_bounds(trace)))[:least] for trace in sides)
    with np.errstate(invalid="ignore"):
        off = np.abs(left.astype(np.float64) - right.astype(np.float64))
    return np.asarray(np.isposinf(bounds) | (off <= bounds))


def _bounds(trace: Trace) -> Iterator[Array | None]:
    """The bound of each output, by the list model."""
    for step in expected(trace):
        yield None if step.outputs is None else step.outputs.bound
