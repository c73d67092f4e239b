"""The laws of caches of several layers, whose ends are compared by what the queries of each layer see.

Every side ends with appends. A side in which a rewind is refused says nothing, so none is drawn that would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import layers
from kvconform.judge.levels import folds, visible
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import DISAGREE, Results, Sides, of_ends, register, trace, unequal
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config, encoded_layers
from kvspec.operations.table import listed
from kvspec.session.step import Step
from kvspec.trace import Trace

END = ("append 1", "append 3")
"""What both sides end with."""


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How what the queries of each layer see differs in the end. Rows are known by their position."""
    return unequal(*(_shown(*each) for each in zip(sides, results, strict=True)))


def _shown(side: Trace, result: TrialResult) -> list[list[str]]:
    """For each of the last steps what each layer shows."""
    model = at_the_end(side).caches["A"]
    place: dict[int, int | str] = {serial: p for p, token in enumerate(model.tokens) for serial in token}
    place |= {
        serial: f"of the encoder {i}" for rows in getattr(model, "encoded", ()) for i, serial in enumerate(rows)
    }
    shown = [_layers(step, result, place) for _, step in result.steps[-len(END) :]]
    for lines, (_, step) in zip(shown, result.steps[-len(END) :], strict=True):
        tokens = model.tokens[: step.values.get("offset", model.offset)]
        for layer, of in enumerate(_own(side.config.of or "")):
            if (name := f"fold.{of}") in step.arrays and lines and lines != [DISAGREE]:
                made = folds.told(step.arrays[name], [token[layer] for token in tokens], result.book)
                lines[of] = " ".join(str(place.get(s, "?")) for s in made or [])
    return shown


def _own(views: str) -> list[int]:
    """The layers that appends give rows, in the order in which a token has a row for each."""
    return [layer for layer, view in enumerate(views.split(",")) if not view.startswith(("share", "cross"))]


def _layers(step: Step, result: TrialResult, place: dict[int, int | str]) -> list[str]:
    """A line for each layer of a step; nothing where masks are left to the caller."""
    mask = step.arrays.get("mask")
    count = sum(name.startswith("history.") and name.endswith(".k") for name in step.arrays)
    names = visible.padded(step, count, result.book)
    if names is None:
        return [DISAGREE]
    if mask is None:
        return []
    return [
        _line([visible.seen(rows, mask, (layer, 0), q) for q in range(mask.shape[2])], place)
        for layer, rows in enumerate(names)
    ]


def _line(queries: Sequence[list[tuple[int, float]] | None], place: dict[int, int | str]) -> str:
    """What each query sees, by position; `?` for a row of no live token."""
    return ", ".join(" ".join(sorted(str(place.get(s, "?")) for s, _ in seen or [])) for seen in queries)


@of_ends
def alone(sides: Sides, results: Results) -> str:
    """How what the one layer shows differs from what it shows among others."""
    left, right = (_shown(*each) for each in zip(sides, results, strict=True))
    views, (view, *_) = (sides.left.config.of or "").split(","), (sides.right.config.of or "").split(",")
    at = _read(views).index(view)
    return unequal([shown[at : at + 1] for shown in left], [shown[:1] for shown in right])


def _read(views: Sequence[str]) -> list[str]:
    """The view of each layer; of one that shares, that of its owner."""
    return [views[int(view.partition(":")[2])] if view.startswith("share") else view for view in views]


law = partial(register, needs=("layers",), configs=layers.configs, compare=difference)


def _trace(config: Config, *texts: str) -> Trace:
    return trace("layers", config, *texts, *END)


def _appends(draw: st.DrawFn, most: int = 4) -> list[str]:
    return [f"append {n}" for n in draw(st.lists(st.integers(0, 5), max_size=most))]


def _encoded(draw: st.DrawFn, config: Config) -> list[str]:
    """Rows of an encoder, mostly, if layers see some."""
    return [f"encode {draw(st.integers(0, 4))} fill=legible"] if encoded_layers(config) else []


def _going_back(draw: st.DrawFn, config: Config, ops: Sequence[str], most: int = 3) -> list[str]:
    """Operations, and after them rewinds that are not refused, each with an append behind it."""
    done = list(ops)
    for _ in range(draw(st.integers(0, most))):
        done += [f"rewind {draw(st.sampled_from(reached(config, done)))}", f"append {draw(st.integers(1, 4))}"]
    return done


def reached(config: Config, ops: Sequence[str]) -> list[int]:
    """The targets, also the offset, that a cache can go to after these operations."""
    model = at_the_end(trace("layers", config, *ops)).caches["A"]
    return [to for to in range(model.offset + 1) if model.can_rewind(to)]


@law("LAYER-25", compare=alone)
def each_alone(draw: st.DrawFn, config: Config) -> Sides:
    """Among the other layers, or alone; one of an encoder's rows beside one that appends give rows."""
    ops = [*_encoded(draw, config), *_going_back(draw, config, _appends(draw))]
    view = draw(st.sampled_from(_read((config.of or "").split(","))))
    if view == "cross":
        return Sides(_trace(config, *ops), _trace(config.changed(of="cross,full", layers=1), *ops))
    right = [op for op in ops if not op.startswith("encode")]
    return Sides(_trace(config, *ops), _trace(config.changed(of=view, layers=1), *right))


@law("CACHE-10")
def split(draw: st.DrawFn, config: Config) -> Sides:
    """The same rows in one append, or in several."""
    before = _going_back(draw, config, _appends(draw), most=1)
    parts = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5))
    return Sides(
        _trace(config, *before, f"append {sum(parts)}"), _trace(config, *before, *(f"append {n}" for n in parts))
    )


@law("CACHE-11")
def undone(draw: st.DrawFn, config: Config) -> Sides:
    """An append that is taken back where that is possible, or none."""
    before = _appends(draw)
    offset = sum(int(op.split()[1]) for op in before)
    more = [f"append {draw(st.integers(1, 5))}"]
    back = [f"rewind {offset}"] if offset in reached(config, [*before, *more]) else []
    return Sides(_trace(config, *before, *(more if back else []), *back), _trace(config, *before))


@law("CACHE-12")
def twice(draw: st.DrawFn, config: Config) -> Sides:
    """Two rewinds, or the second alone."""
    before = _appends(draw)
    first = draw(st.sampled_from(reached(config, before)))
    both = [to for to in reached(config, [*before, f"rewind {first}"]) if to in reached(config, before)]
    second = draw(st.sampled_from(both)) if both else first
    right = [*before, f"rewind {second}"]
    return Sides(_trace(config, *before, f"rewind {first}", f"rewind {second}"), _trace(config, *right))


@law("CACHE-14")
def apart(draw: st.DrawFn, config: Config) -> Sides:
    """With operations on another cache in between, or without."""
    before = _going_back(draw, config, _appends(draw), most=1)
    others = ("append 1", "append 3", "rewind 0", "free", "append 2")
    mixed = [op for each in before for op in (each, f"B: {draw(st.sampled_from(others))}")]
    return Sides(_trace(config, "open B of=full,window:2 layers=2", *mixed, "B: append 1"), _trace(config, *before))


@law("LAYER-35", needs=("layers", "snapshot"))
def put_back(draw: st.DrawFn, config: Config) -> Sides:
    """A snapshot that is put back after whatever else was done, or a rewind at that moment."""
    appends = [f"append {draw(st.integers(1, 5))}", *_appends(draw)]
    before = [*_encoded(draw, config), *_going_back(draw, config, appends, most=1)]
    to = draw(st.sampled_from(reached(config, before)))
    encodes = ["encode 2 fill=legible"] * bool(encoded_layers(config))
    others = ("append 1", "append 4", "rewind 0", "free", "append 2", *encodes)
    between = draw(st.lists(st.sampled_from(others), max_size=4))
    saved = [*before, "snapshot s", *between, f"restore s {to}"]
    return Sides(_trace(config, *saved), _trace(config, *before, f"rewind {to}"))


@law("LAYER-47", configs=layers.crossing_configs)
def whenever(draw: st.DrawFn, config: Config) -> Sides:
    """The rows of an encoder first, or before any later operation."""
    ops, encode = _going_back(draw, config, _appends(draw)), f"encode {draw(st.integers(1, 4))} fill=legible"
    at = draw(st.integers(0, len(ops)))
    return Sides(_trace(config, encode, *ops), _trace(config, *ops[:at], encode, *ops[at:]))


@law("LAYER-55")
def branch_append(draw: st.DrawFn, config: Config) -> Sides:
    """A draft of several ways on that is kept, or an append of the rows on its way; or none that is."""
    before = [*_encoded(draw, config), *_going_back(draw, config, _appends(draw), most=1)]
    on = [draw(st.integers(-1, i - 1)) for i in range(draw(st.integers(1, 6)))]
    draft = draw(st.integers(-1, len(on) - 1))
    way = _way(on, draft)
    kept = [f"branch {len(on)} on={listed(on)}", f"settle {draft}"]
    return Sides(_trace(config, *before, *kept), _trace(config, *before, f"append {len(way)}"))


def _way(on: Sequence[int], draft: int) -> list[int]:
    """The drafts on the way to one, and itself; none to -1."""
    return [*_way(on, on[draft]), draft] if draft >= 0 else []
