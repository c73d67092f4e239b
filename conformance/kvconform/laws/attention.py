"""The laws of attention. Two sides are compared by all their outputs.

At level storage outputs must have the same bits; else they must be within bounds. Where only one side has other
sequences, sequence 0 is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from hypothesis import strategies as st

from kvconform.generate.strategies import batch
from kvconform.laws import caches
from kvconform.laws.law import Results, Sides, of_ends, register, trace
from kvconform.oracle.follow import expected
from kvspec.geometry import Array, Config
from kvspec.operations.table import caches_with, listed
from kvspec.trace import Trace


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the outputs of the two sides differ; empty if they do not."""
    outputs = [_joined(step.arrays.get("output") for _, step in result.steps) for result in results]
    least = min(o.shape[0] for o in outputs)
    left, right = (o[:least] for o in outputs)
    exact = all(r.level == "storage" for r in results) and len({_splits(side) for side in sides}) == 1
    wrong = np.argwhere(_unlike(left, right) if exact else ~_near(left, right, sides, least))
    if not len(wrong):
        return ""
    at = tuple(wrong[0])
    where = [int(i) for i in at]
    return f"at {where} the left side's output is {left[at]:.9g}, the right side's {right[at]:.9g}"


def _joined(outputs: Iterator[Array | None]) -> Array:
    return np.concatenate([o for o in outputs if o is not None], axis=2)


def _splits(side: Trace) -> tuple[tuple[int, str], ...]:
    return tuple({(op.get("splits", 1), op.get("cuts", "")) for op in side.ops if op["op"].startswith("attend")})


def _unlike(left: Array, right: Array) -> Array:
    """Where bits differ, all NaN being alike."""
    return np.asarray((left.view(np.uint32) != right.view(np.uint32)) & ~(np.isnan(left) & np.isnan(right)))


def _near(left: Array, right: Array, sides: Sides, least: int) -> Array:
    """Where the two differ by no more than the bounds of both together; anywhere that nothing is bounded."""
    bounds = sum(_joined(iter(_bounds(side)))[:least] for side in sides)
    with np.errstate(invalid="ignore"):
        off = np.abs(left.astype(np.float64) - right.astype(np.float64))
    return np.asarray(np.isposinf(bounds) | (off <= bounds))


def _bounds(side: Trace) -> Iterator[Array | None]:
    """The bound of each output, by the list model."""
    for step in expected(side):
        yield None if step.outputs is None else step.outputs.bound


def _before(draw: st.DrawFn) -> list[str]:
    """Rows to begin with, up to beyond the end of a tile."""
    n = draw(st.sampled_from((0, 1, 3, 29, 31, 32, 33, 65)))
    return [f"append {n} fill=random"] if n else []


def _queries(draw: st.DrawFn, config: Config) -> str:
    heads = config.kv_heads * draw(st.sampled_from((1, 2, 4)))
    return f"heads={heads} queries={draw(st.sampled_from(('random', 'random', 'huge', 'tiny')))}"


def _mask(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(("", f" through causal & window={draw(st.integers(1, 40))}")))


law = partial(register, compare=difference)


@law("ATTN-33", needs=("attention",), kinds=caches_with("attend"))
def at_once(draw: st.DrawFn, config: Config) -> Sides:
    """n queries in one attend, or one by one."""
    before, n, queries, mask = _before(draw), draw(st.integers(1, 5)), _queries(draw, config), _mask(draw)
    how = f"{queries} splits={draw(st.integers(1, 3))}{mask}"
    left, right = [*before, f"attend {n} {how}"], [*before, *[f"attend 1 {how}"] * n]
    return Sides(caches.plain(config, *left), caches.plain(config, *right))


@law("ATTN-34", needs=("ring", "growing", "attention"))
def window(draw: st.DrawFn, config: Config) -> Sides:
    """A ring, or a growing cache through its window."""
    width = config.window or draw(st.integers(1, 40))
    sizes, queries = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)), _queries(draw, config)
    before = _before(draw)
    left = [*before, *(f"attend {n} {queries}" for n in sizes)]
    right = [*before, *(f"attend {n} {queries} through causal & window={width}" for n in sizes)]
    ring, growing = config.changed(window=width), config.changed(window=None)
    return Sides(caches.plain(ring, *left), caches.plain(growing, *right))


@law("ATTN-35", needs=("store", "batch", "attention"), configs=batch.configs)
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """A sequence among others, or by itself."""
    stored, m = draw(st.integers(1, config.max_len or 1)), draw(st.integers(2, 4))
    queries = _queries(draw, config)
    lengths = [draw(st.integers(0, stored)) for _ in range(m)]
    begin, layer = f"append {stored} fill=random", draw(st.integers(0, (config.layers or 1) - 1))
    end = f"attendbatch {layer} {queries} splits={draw(st.integers(1, 2))}"
    left = [begin, f"batch {m}", *(f"scatter {s} {n}" for s, n in enumerate(lengths)), end]
    right = [begin, "batch 1", f"scatter 0 {lengths[0]}", end]
    return Sides(trace("store", config, *left), trace("store", config, *right))


@law("ATTN-49", needs=("attention",), kinds=caches_with("attend"))
def hidden(draw: st.DrawFn, config: Config) -> Sides:
    """Rows that are dropped again, out of the window or masked, of these numbers or of others."""
    return _hidden(draw, config, ("even", "random"))


@law("ATTN-50", needs=("attention",), kinds=caches_with("attend"))
def hidden_edges(draw: st.DrawFn, config: Config) -> Sides:
    """The same of arbitrary bits or of numbers."""
    return _hidden(draw, config, ("bits", "random"))


def _hidden(draw: st.DrawFn, config: Config, filled: tuple[str, str]) -> Sides:
    dead, queries, window = draw(st.integers(1, 5)), _queries(draw, config), config.window
    back = ["append 2 fill=random", "append {n} fill={fill}", "rewind 2", "attend 1 {queries}"]
    past = ["append {n} fill={fill}", f"append {window} fill=random", "attend 1 {queries}"]
    masked = ["append {n} fill={fill}", "append 2 fill=random", "attend 1 {queries} through " + "0" * dead + "111"]
    if window:
        texts = past if window < dead + 2 or draw(st.booleans()) else back
    else:
        texts = draw(st.sampled_from((masked, back)))
    texts = texts if texts is masked else [*texts, "attend 3 {queries}"]
    fills = ([x.format(n=dead, fill=fill, queries=queries) for x in texts] for fill in filled)
    return Sides(*(caches.plain(config, *each) for each in fills))


@law("ATTN-37", needs=("attention",), kinds=caches_with("attend"))
def splits(draw: st.DrawFn, config: Config) -> Sides:
    """One split, or several."""
    before, queries, mask = _before(draw), _queries(draw, config), _mask(draw)
    n, several = draw(st.integers(1, 3)), draw(st.integers(2, 9))
    return Sides(*(caches.plain(config, *before, f"attend {n} {queries} splits={s}{mask}") for s in (1, several)))


@law("ATTN-61", needs=("attention",), kinds=caches_with("attend"))
def far_below(draw: st.DrawFn, config: Config) -> Sides:
    """Sinks that weigh nothing, or none."""
    before, heads, mask = _before(draw), config.kv_heads * draw(st.sampled_from((1, 2, 4))), _mask(draw)
    how = f"heads={heads} queries={draw(st.sampled_from(('random', 'tiny')))} splits={draw(st.integers(1, 3))}"
    text, sinks = f"attend {draw(st.integers(1, 3))} {how}", ",".join(["-1000000"] * heads)
    return Sides(*(caches.plain(config, *before, f"{text}{s}{mask}") for s in ("", f" head_sinks={sinks}")))


@law("ATTN-67", needs=("attention",), kinds=caches_with("attend"))
def parts(draw: st.DrawFn, config: Config) -> Sides:
    """The whole, or parts that are joined."""
    before, queries, mask, n = _before(draw), _queries(draw, config), _mask(draw), draw(st.integers(1, 3))
    held = min(_rows(before) + n, (config.window or 1 << 20) + n - 1)
    cuts = listed(sorted(draw(st.lists(st.integers(0, held), min_size=1, max_size=4))))
    text = f"attend {n} {queries}"
    return Sides(*(caches.plain(config, *before, f"{text}{more}{mask}") for more in ("", f" cuts={cuts}")))


def _rows(before: list[str]) -> int:
    return sum(int(text.split()[1]) for text in before)
