"""Laws that relate two traces: what is visible in the end must be the same on both sides.

Each law draws a left and a right trace that end alike. They are proved on the list model and the reference in
the project's own tests; an adapter is driven with both sides as ordinary traces, and its ends are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from kvconform.generate.strategies import batch as batched
from kvconform.generate.strategies import bucket as bucketed
from kvconform.generate.strategies import copy as copies
from kvconform.generate.strategies import page as pages
from kvconform.generate.strategies.caches import configs
from kvconform.judge import visible
from kvconform.judge.trial import Outcome
from kvconform.laws import attention, bucket, page, rope, store
from kvconform.laws import batch as batches
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import CACHES, Array, Config
from kvspec.operations.notation import operation
from kvspec.session.driver import Step
from kvspec.trace import Trace

END = ("append 1", "append 2", "view", "append 1")
"""What both sides end with: enough to see the whole state of a cache."""


@dataclass(frozen=True)
class Sides:
    """The two traces a law relates."""

    left: Trace
    right: Trace


@dataclass(frozen=True)
class Law:
    """The clause that states a law, the cache it is drawn on, the profiles it needs, and how sides are drawn."""

    clause: str
    profile: str
    needs: tuple[str, ...]
    sides: Callable[[st.DrawFn, Config], Sides]

    def strategy(self) -> st.SearchStrategy[Sides]:
        """Sides on any configuration."""

        @st.composite
        def drawn(draw: st.DrawFn) -> Sides:
            return self.sides(draw, draw(CONFIGS.get(self.profile, configs)(self.profile)))

        return drawn()


CONFIGS: dict[str, Callable[[str], st.SearchStrategy[Config]]] = {
    "copy": lambda _: copies.configs(),
    "store": lambda _: batched.configs(),
    "bucket": lambda _: bucketed.configs(),
    "page": lambda _: pages.configs(),
}
"""The configurations that the laws of a profile are drawn on, where it is no cache."""


def _trace(config: Config, *ops: str) -> Trace:
    return Trace("ring" if config.window else "growing", config, tuple(operation(o) for o in (*ops, *END)))


def _start(draw: st.DrawFn, config: Config, most: int = 3, least: int = 0) -> tuple[list[str], int]:
    """Appends to begin with, and the offset they lead to. Below the window, where rewinds are all allowed."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=least, max_size=most))
    total = sum(sizes)
    return [f"append {n}" for n in sizes], total


def split(draw: st.DrawFn, config: Config) -> Sides:
    """n rows in one append, or in several."""
    before, _ = _start(draw, config)
    parts = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5))
    return Sides(
        _trace(config, *before, f"append {sum(parts)}"),
        _trace(config, *before, *(f"append {n}" for n in parts)),
    )


def append_rewind(draw: st.DrawFn, config: Config) -> Sides:
    """Rows appended and rewound again, or never appended."""
    before, offset = _start(draw, config, 2)
    room = 6 if config.window is None else config.window - offset
    n = draw(st.integers(0, 6)) if room >= 6 else draw(st.integers(0, max(0, room)))
    return Sides(_trace(config, *before, f"append {n}", f"rewind {offset}"), _trace(config, *before))


def rewinds(draw: st.DrawFn, config: Config) -> Sides:
    """Two rewinds, or the lower alone."""
    most = 12 if config.window is None else min(12, config.window)
    offset = draw(st.integers(0, most))
    a = draw(st.integers(0, offset))
    b = draw(st.integers(0, a))
    begin = f"append {offset}"
    return Sides(_trace(config, begin, f"rewind {a}", f"rewind {b}"), _trace(config, begin, f"rewind {b}"))


def steps(draw: st.DrawFn, config: Config) -> Sides:
    """Two growth steps."""
    before, _ = _start(draw, config, 5)
    other = draw(st.sampled_from((1, 2, 3, 5, 64)))
    return Sides(_trace(config, *before), _trace(config.changed(step=other), *before))


def batch(draw: st.DrawFn, config: Config) -> Sides:
    """A batch, or one sequence alone."""
    before, _ = _start(draw, config, 5)
    return Sides(
        _trace(config.changed(batch=draw(st.integers(2, 3))), *before), _trace(config.changed(batch=1), *before)
    )


def independence(draw: st.DrawFn, config: Config) -> Sides:
    """Another cache used in between, or not."""
    before, _ = _start(draw, config)
    others = ["append 1", "append 3", "rewind 1", "free", "append 2", "view"]
    between = [f"B: {draw(st.sampled_from(others))}" for _ in before]
    mixed = [op for pair in zip(before, between, strict=True) for op in pair]
    return Sides(_trace(config, "open B", "B: append 2", *mixed, "B: append 1"), _trace(config, *before))


def snapshot_restore(draw: st.DrawFn, config: Config) -> Sides:
    """Saved, changed and restored, or left alone."""
    before, offset = _start(draw, config, least=1)
    changes = draw(st.lists(st.sampled_from(("append 1", "append 3", "view", "free")), max_size=3))
    return Sides(_trace(config, *before, "snapshot s", *changes, f"restore s {offset}"), _trace(config, *before))


def split_merge(draw: st.DrawFn, config: Config) -> Sides:
    """A snapshot split and merged again, then restored; or restored as it was."""
    before, offset = _start(draw, config)
    before, offset = ["append 2", *before], offset + 2
    at = draw(st.integers(-1, offset + 1))
    again = [f"split s {at} p q", "merge p q s"]
    after = ["append 2", f"restore s {offset}"]
    return Sides(
        _trace(config, *before, "snapshot s", *again, *after), _trace(config, *before, "snapshot s", *after)
    )


def _rounds(*rounds: tuple[list[int], int]) -> list[str]:
    """Rounds on A, one after another: the drafts of each call, and how many of all are kept."""
    ops = (("speculate r A", *(f"draft r {n}" for n in calls), f"commit r {kept}") for calls, kept in rounds)
    return [op for round_ in ops for op in round_]


def _drafts(draw: st.DrawFn) -> tuple[int, int]:
    """Drafts of a round, and how many of them are kept."""
    drafted = draw(st.integers(0, 7))
    return drafted, draw(st.integers(0, drafted))


def round_append(draw: st.DrawFn, config: Config) -> Sides:
    """Rows that a round keeps, or that are appended at once."""
    before, _ = _start(draw, config)
    drafted, kept = _drafts(draw)
    return Sides(_trace(config, *before, *_rounds(([drafted], kept))), _trace(config, *before, f"append {kept}"))


def round_nothing(draw: st.DrawFn, config: Config) -> Sides:
    """A round that keeps nothing, or none."""
    before, _ = _start(draw, config)
    isolated, end = draw(st.sampled_from((("", "commit r 0"), ("", "abandon r"), (" isolated=1", "abandon r"))))
    drafts = f"draft r {draw(st.integers(0, 7))}"
    return Sides(_trace(config, *before, f"speculate r A{isolated}", drafts, end), _trace(config, *before))


def round_split(draw: st.DrawFn, config: Config) -> Sides:
    """Drafts in several calls, or in one."""
    before, _ = _start(draw, config)
    calls = draw(st.lists(st.integers(0, 3), min_size=2, max_size=4))
    kept = draw(st.integers(0, sum(calls)))
    sides = (_trace(config, *before, *_rounds((c, kept))) for c in (calls, [sum(calls)]))
    return Sides(*sides)


def two_rounds(draw: st.DrawFn, config: Config) -> Sides:
    """Two rounds, or one that keeps as many rows as both."""
    before, _ = _start(draw, config)
    (a, m), (b, n) = _drafts(draw), _drafts(draw)
    two, one = _rounds(([a], m), ([b], n)), _rounds(([a + b], m + n))
    return Sides(_trace(config, *before, *two), _trace(config, *before, *one))


def copy_split(draw: st.DrawFn, config: Config) -> Sides:
    """n rows copied at once, or in parts, each to where it belongs."""
    capacity, sliding = config.capacity or 1, draw(st.booleans())
    parts = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5))
    parts = parts if sliding or sum(parts) <= capacity else [capacity // 2, capacity - capacity // 2]
    near = draw(st.sampled_from((0, capacity, *copies.POWERS)))
    at = draw(st.integers(near, near + capacity - 1)) if sliding else draw(st.integers(0, capacity - sum(parts)))
    source = draw(st.sampled_from(("", " fill=bits", " dtype=f32 fill=edges"))) + " sliding=1" * sliding
    places = [at + sum(parts[:i]) for i in range(len(parts))]
    before = operation(f"copy {draw(st.integers(0, capacity))} 0")
    one = operation(f"copy {sum(parts)} {at}{source}")
    several = [operation(f"copy {n} {p}{source}") for n, p in zip(parts, places, strict=True)]
    return Sides(Trace("copy", config, (before, one)), Trace("copy", config, (before, *several)))


def _sides(of: Callable[[st.DrawFn, Config], tuple[Trace, Trace]]) -> Callable[[st.DrawFn, Config], Sides]:
    """A law of batches or stores."""
    return lambda draw, config: Sides(*of(draw, config))


_ATTENTION_LAWS = tuple(
    map(_sides, (attention.at_once, attention.window, attention.alone, attention.hidden, attention.splits))
)
_ATTENTION_NEEDS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("growing", "attention"), ("ring", "attention")),
    (("ring", "growing", "attention"),),
    (("store", "batch", "attention"),),
    *((("growing", "attention"), ("ring", "attention")),) * 2,
)
"""What each of these laws needs, on every kind it is drawn on."""
_BATCH_LAWS = tuple(map(_sides, (batches.alone, batches.layers, batches.replays)))
_STORE_LAWS = tuple(
    map(_sides, (store.split, store.layers, store.append_rollback, store.rollbacks, store.save_load))
)
_PAGE_LAWS = tuple(map(_sides, (page.page_size, page.contiguous, page.alone, page.order)))
_PAGE_NEEDS = ("page",), ("page", "growing", "attention"), ("page",), ("page",)
_BUCKET_LAWS = tuple(map(_sides, (bucket.bounds, bucket.growing, bucket.refresh, bucket.block)))
_BUCKET_NEEDS = ("bucket",), ("bucket", "growing", "attention"), ("bucket",), ("bucket",)
_ROPE_LAWS = tuple(map(_sides, (rope.pairings, rope.twice, rope.shifted, rope.ring, rope.block)))
_ROPE_NEEDS: tuple[tuple[str, ...], ...] = (
    *(("growing", "rope"),) * 2,
    *(("growing", "attention", "rope"), ("ring", "growing", "attention", "rope"), ("growing", "attention", "rope")),
)
_CACHE_LAWS = (split, append_rewind, rewinds, steps, batch, independence)
_DRAFT_LAWS = (round_append, round_nothing, round_split, two_rounds)

LAWS = (
    *(Law(f"GROW-{19 + i}", "growing", ("growing",), law) for i, law in enumerate(_CACHE_LAWS)),
    *(Law(f"RING-{28 + i}", "ring", ("ring",), law) for i, law in enumerate(_CACHE_LAWS)),
    *(Law("SNAP-30", p, (p, "snapshot"), split_merge) for p in ("growing", "ring")),
    *(Law("SNAP-31", p, (p, "snapshot"), snapshot_restore) for p in ("growing", "ring")),
    Law("COPY-23", "copy", ("copy",), copy_split),
    *(Law(f"STORE-{29 + i}", "store", ("store",), law) for i, law in enumerate(_STORE_LAWS)),
    *(Law(f"BATCH-{28 + i}", "store", ("store", "batch"), law) for i, law in enumerate(_BATCH_LAWS)),
    *(Law(f"DRAFT-{29 + i}", p, (p, "draft"), law) for i, law in enumerate(_DRAFT_LAWS) for p in CACHES),
    *(
        Law(f"ATTN-{33 + i}", needs[0], needs, law)
        for i, law in enumerate(_ATTENTION_LAWS)
        for needs in _ATTENTION_NEEDS[i]
    ),
    *(Law(f"PAGE-{43 + i}", "page", _PAGE_NEEDS[i], law) for i, law in enumerate(_PAGE_LAWS)),
    *(Law(f"BUCKET-{39 + i}", "bucket", _BUCKET_NEEDS[i], law) for i, law in enumerate(_BUCKET_LAWS)),
    *(Law(f"ROPE-{24 + i}", _ROPE_NEEDS[i][0], _ROPE_NEEDS[i], law) for i, law in enumerate(_ROPE_LAWS)),
)


def broken(sides: Sides, left: Outcome, right: Outcome) -> str:
    """How the ends of the two sides differ on the adapter; empty if they do not. Rows are known by position."""
    if rope.concerns(sides.left):
        return rope.differ((sides.left, sides.right), (left, right))
    if sides.left.profile == "page":
        return page.differ((sides.left, sides.right), (left, right))
    if sides.left.profile == "bucket":
        return bucket.differ((sides.left, sides.right), (left, right))
    if attention.concerns(sides.left):
        return attention.differ((sides.left, sides.right), (left, right))
    if sides.left.profile == "copy":
        return _buffers(sides, left, right)
    if sides.left.profile == "store":
        differ = batches.differ if any(op["op"] == "batch" for op in sides.left.ops) else store.differ
        return differ((sides.left, sides.right), (left, right))
    ends = [_end(side, seen) for side, seen in ((sides.left, left), (sides.right, right))]
    for i, op in enumerate(END):
        for a, b in ((x, y) for x in ends[0][i] for y in ends[1][i]):
            if a != b:
                return f"after the left side `{op}` shows {a}, after the right side {b}"
    return ""


def _buffers(sides: Sides, left: Outcome, right: Outcome) -> str:
    """How two buffers differ in the end; rows are known by their serials, which both sides give out alike."""
    shown = []
    for side, seen in ((sides.left, left), (sides.right, right)):
        if len(seen.steps) < len(side.ops):
            return f"it failed at step {len(seen.steps)}"
        last = seen.steps[-1][1].arrays
        named = visible.one_name_each(last.get("state.k"), last.get("state.v"), seen.book)
        shown.append("keys and values that do not agree" if named is None else visible.words(named[0]))
    return "" if shown[0] == shown[1] else f"the left side leaves {shown[0]}, the right side {shown[1]}"


def _end(side: Trace, seen: Outcome) -> list[list[str]]:
    """For each of the last steps what each sequence sees, rows named by their position among all that live."""
    if len(seen.steps) < len(side.ops):
        return [[f"nothing: it failed at step {len(seen.steps)}"]] * len(END)
    positions = _positions(side)
    return [_shown(step, seen, positions) for _, step in seen.steps[-len(END) :]]


def _positions(side: Trace) -> dict[int, int]:
    """Position of each row that is live in cache A at the end, by the list model."""
    return {s: i for i, s in enumerate(at_the_end(side).caches["A"].tokens)}


def _shown(step: Step, seen: Outcome, positions: dict[int, int]) -> list[str]:
    """A line a sequence. Who leaves masking to the caller shows nothing but its view."""
    arrays = step.arrays
    what = "view" if "view.k" in arrays else "history"
    if what == "history" and "mask" not in arrays:
        return []
    named = visible.one_name_each(arrays.get(f"{what}.k"), arrays.get(f"{what}.v"), seen.book)
    if named is None:
        return ["keys and values that do not agree"]
    mask = arrays.get("mask") if what == "history" else None
    return [_sequence(rows, mask, b, positions) for b, rows in enumerate(named)]


def _sequence(rows: list[int], mask: Array | None, sequence: int, positions: dict[int, int]) -> str:
    count = 1 if mask is None else mask.shape[2]
    queries = [visible.seen(rows, mask, (sequence, 0), q) or [] for q in range(count)]
    return ", ".join(" ".join(str(p) for p in sorted(positions.get(s, -1) for s, _ in q)) or "-" for q in queries)
