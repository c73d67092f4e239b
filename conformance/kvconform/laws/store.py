"""The laws of stores. Two ends are compared by what every layer holds."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import batch
from kvconform.judge.levels import visible
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import DISAGREE, Results, Sides, register, trace
from kvconform.oracle.follow import at_the_end
from kvref.list_model.store import StoreModel
from kvspec.geometry import Array, Config
from kvspec.rows.serials import letters
from kvspec.trace import Trace

END = ("append 0", "append 1", "append 1 layer=0", "rollback 1")
"""What both sides end with: the live rows as they are, and where the next ones go."""


def difference(sides: Sides, results: Results) -> str:
    """How the two ends differ; empty if they do not. Rows are known by the positions they were written at."""
    left, right = map(_end, sides, results)
    for op, a, b in zip(END, left, right, strict=True):
        if a != b:
            return f"after the left side `{op}` shows {a}, after the right side {b}"
    return ""


def _end(side: Trace, result: TrialResult) -> list[str]:
    """For each of the last steps what every layer holds."""
    if len(result.steps) < len(side.ops):
        return [f"nothing: it failed at step {len(result.steps)}"] * len(END)
    positions = _positions(side)
    return [
        "; ".join(_shown(step.arrays, layer, result, known) for layer, known in enumerate(positions))
        for _, step in result.steps[-len(END) :]
    ]


def _shown(arrays: dict[str, Array | None], layer: int, result: TrialResult, positions: dict[int, int]) -> str:
    """Positions of the rows of a layer; a dot for a row of zeros, `?` for one that was not written there."""
    keys, values = (arrays.get(f"state.{layer}.{kind}") for kind in "kv")
    names = visible.one_name_each(keys, values, result.book)
    if names is None:
        return DISAGREE
    return " ".join(str(positions.get(s, letters(min(s, -1)))) for s in names[0]) or "nothing"


def _positions(side: Trace) -> list[dict[int, int]]:
    """Where each row was written, layer by layer, by the list model."""
    store: StoreModel = at_the_end(side).caches["A"]
    return [{serial: at for at, serial in layer.writes if serial >= 0} for layer in store.layers]


law = partial(register, needs=("store",), configs=batch.configs, compare=difference)


def _trace(config: Config, *texts: str) -> Trace:
    return trace("store", config, *texts, *END)


def _start(draw: st.DrawFn, config: Config) -> tuple[list[str], list[int]]:
    """Operations to begin with, none of them refused, and the lengths they lead to."""
    room, lengths, texts = config.max_len or 1, [0] * (config.layers or 1), list[str]()
    for _ in range(draw(st.integers(0, 5))):
        layer = draw(st.integers(0, len(lengths) - 1))
        n = draw(st.integers(0, room))
        match draw(st.sampled_from(("append", "setlength", "rollback"))):
            case "append":
                n = min(n, room - lengths[layer])
                texts.append(f"append {n} layer={layer}")
                lengths[layer] += n
            case "setlength":
                texts.append(f"setlength {layer} {n}")
                lengths[layer] = n
            case "rollback":
                texts.append(f"rollback {n}")
                lengths = [min(length, n) for length in lengths]
    return texts, lengths


def _parts(draw: st.DrawFn, room: int) -> list[int]:
    """Numbers of rows for which there is room together."""
    parts = list[int]()
    for _ in range(draw(st.integers(2, 4))):
        parts.append(draw(st.integers(0, room - sum(parts))))
    return parts


@law("CACHE-10")
def split(draw: st.DrawFn, config: Config) -> Sides:
    """n rows in one append, or in several."""
    before, lengths = _start(draw, config)
    layer = draw(st.sampled_from((None, *range(len(lengths)))))
    longest, where = (max(lengths), "") if layer is None else (lengths[layer], f" layer={layer}")
    parts = _parts(draw, (config.max_len or 1) - longest)
    several = [f"append {n}{where}" for n in parts]
    return Sides(_trace(config, *before, f"append {sum(parts)}{where}"), _trace(config, *before, *several))


@law("STORE-30")
def layers(draw: st.DrawFn, config: Config) -> Sides:
    """Rows for all layers at once, or for one after the other, in any order."""
    before, lengths = _start(draw, config)
    n = draw(st.integers(0, (config.max_len or 1) - max(lengths)))
    each = [f"append {n} layer={layer}" for layer in draw(st.permutations(range(len(lengths))))]
    return Sides(_trace(config, *before, f"append {n}"), _trace(config, *before, *each))


@law("STORE-31")
def append_rollback(draw: st.DrawFn, config: Config) -> Sides:
    """Rows appended and rolled back, or never appended."""
    before, _ = _start(draw, config)
    length = draw(st.integers(0, config.max_len or 1))
    before += ["reset", f"append {length}"]
    n = draw(st.integers(0, (config.max_len or 1) - length))
    return Sides(_trace(config, *before, f"append {n}", f"rollback {length}"), _trace(config, *before))


@law("STORE-32")
def rollbacks(draw: st.DrawFn, config: Config) -> Sides:
    """Two rollbacks, or one to the lower of both."""
    before, _ = _start(draw, config)
    a, b = (draw(st.integers(0, (config.max_len or 1) + 1)) for _ in range(2))
    two = _trace(config, *before, f"rollback {a}", f"rollback {b}")
    return Sides(two, _trace(config, *before, f"rollback {min(a, b)}"))


@law("STORE-33")
def save_load(draw: st.DrawFn, config: Config) -> Sides:
    """Saved, changed and loaded, or left alone."""
    before, _ = _start(draw, config)
    between, _ = _start(draw, config)
    cleared = draw(st.sampled_from(("reset", "zero", "init")))
    return Sides(_trace(config, *before, "save s", cleared, *between, "load s"), _trace(config, *before))
