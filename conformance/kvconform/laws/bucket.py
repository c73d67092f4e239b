"""The laws of bucketed caches. Two ends are compared by the rows of every layer and by the last outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import bucket
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import Results, Sides, of_ends, positions, register, trace
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Array, Config
from kvspec.registry import fitted
from kvspec.trace import Trace

END = ("decode", "block 1", "unbind", "sync")
"""What both sides end with: outputs over the rows there are, and the rows themselves."""


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the two ends differ; empty if they do not.

    Rows are known by their positions in the list model. Outputs of strict attention are compared by their bits,
    where both sides have the same rows.
    """
    left, right = map(_rows, sides, results)
    if left != right:
        return f"after the left side the layers hold {left}, after the right side {right}"
    same = _serials(sides.left) == _serials(sides.right) and {r.level for r in results} == {"storage"}
    return _unlike(*map(_outputs, results)) if same else ""


def _unlike(left: list[Array], right: list[Array]) -> str:
    """How the last two outputs of both sides differ."""
    for one, other in zip(left[-2:], right[-2:], strict=True):
        if one.tobytes() != other.tobytes():
            a, b = one.ravel()[0], other.ravel()[0]
            return f"an output begins {a:.9g} on the left side, {b:.9g} on the right side"
    return ""


def _outputs(result: TrialResult) -> list[Array]:
    """All outputs, in order."""
    outputs = (step.arrays.get("output") for _, step in result.steps)
    return [a for a in outputs if a is not None]


def _serials(side: Trace) -> list[list[int]]:
    """The serials of each layer in the end, by the list model."""
    model = at_the_end(side).caches["A"]
    serials: list[list[int]] = model.layers if side.kind == "bucket" else [model.tokens]
    return serials


def _rows(side: Trace, result: TrialResult) -> str:
    """What every layer shows in the end; a growing cache has one, and shows its view."""
    serials = _serials(side)
    names = [f"state.{i}" for i in range(len(serials))] if side.kind == "bucket" else ["view"]
    return "; ".join(map(partial(positions, result), names, serials))


def _texts(draw: st.DrawFn, room: int) -> list[str]:
    """A prefill and a few operations. None is refused, and up to `room` past rows are there before `END`."""
    past = draw(st.integers(0, room))
    texts = [f"prefill {past}", "bind refresh=1"]
    for _ in range(draw(st.integers(0, 8))):
        match draw(st.sampled_from(("decode",) * 4 + ("prefill", "cut", "unbind", "bind"))):
            case "decode":
                if past < room:
                    texts.append(f"decode{draw(st.sampled_from(('', ' splits=3', ' into=1')))}")
                    past += 1
            case "prefill":
                past = draw(st.integers(0, room))
                texts += [f"prefill {past}", "bind refresh=1"]
            case "cut":
                past = draw(st.integers(0, past))
                texts.append(f"cut {past}")
            case kind:
                texts.append(kind)
    return texts


def _largest(config: Config) -> int:
    return int((config.bounds or "1").split("-")[-1])


def _trace(config: Config, texts: Sequence[str]) -> Trace:
    return trace("bucket", config, *texts, *END)


law = partial(register, configs=bucket.configs, compare=difference)


@law("BUCKET-39", needs=("bucket",))
def bounds(draw: st.DrawFn, config: Config) -> Sides:
    """The same on caches of other bounds."""
    other = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True))
    changed = config.changed(bounds="-".join(map(str, sorted(other))))
    texts = _texts(draw, min(_largest(config), max(other)) - 1)
    return Sides(_trace(config, texts), _trace(changed, texts))


@law("BUCKET-40", needs=("bucket", "growing", "attention"))
def growing(draw: st.DrawFn, config: Config) -> Sides:
    """Decodes after a prefill, or attends on a growing cache."""
    n = draw(st.integers(0, _largest(config)))
    steps = draw(st.lists(st.sampled_from(("", " splits=2")), min_size=1, max_size=_largest(config) + 1 - n))
    one = [f"prefill {n}", *(f"decode{how}" for how in steps), "sync"]
    other = [f"append {n} fill=random", *(f"attend 1{how}" for how in steps), "view"]
    alone = config.changed(layers=1)
    return Sides(trace("bucket", alone, *one), trace("growing", fitted("growing", alone), *other))


@law("BUCKET-41", needs=("bucket",))
def refresh(draw: st.DrawFn, config: Config) -> Sides:
    """A sync and a refresh in between, or not."""
    texts = _texts(draw, _largest(config) - 1)
    at = draw(st.integers(0, len(texts)))
    between = ["sync", "bind refresh=1"]
    return Sides(_trace(config, [*texts[:at], *between, *texts[at:]]), _trace(config, texts))


@law("BUCKET-42", needs=("bucket",))
def block(draw: st.DrawFn, config: Config) -> Sides:
    """A block in between that is unbound, or none."""
    texts = _texts(draw, _largest(config) - 1)
    at = draw(st.integers(2, len(texts)))  # before the first refresh the host's rows may be newer
    at += texts[at - 1].startswith("prefill")
    between = [f"block {draw(st.integers(1, 4))}", "unbind"]
    return Sides(_trace(config, [*texts[:at], *between, *texts[at:]]), _trace(config, texts))
