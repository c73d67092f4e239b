"""The laws of bucketed caches: two traces each that end alike, and what is seen at the end of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from kvconform.judge import visible
from kvconform.judge.trial import Outcome
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Array, Config, fitted
from kvspec.operations.notation import operation
from kvspec.trace import Trace

END = ("decode", "block 1", "unbind", "sync")
"""What both sides end with: outputs over the rows there are, and the rows themselves."""

Sides = tuple[Trace, Trace]
Texts = list[str]


def _largest(config: Config) -> int:
    return int((config.bounds or "1").split("-")[-1])


def _trace(config: Config, texts: Sequence[str]) -> Trace:
    return Trace("bucket", config, tuple(map(operation, (*texts, *END))))


@dataclass
class _Drawing:
    """Operations in the making, none of which is refused, on a cache that takes up to `room` past rows before
    `END`."""

    draw: st.DrawFn
    room: int
    past: int = 0
    texts: Texts = field(default_factory=list)

    def fill(self) -> None:
        """A prefill, and a few operations."""
        kinds = ("decode",) * 4 + ("prefill", "cut", "unbind", "bind")
        self._prefill()
        for _ in range(self.draw(st.integers(0, 8))):
            getattr(self, f"_{self.draw(st.sampled_from(kinds))}")()

    def _prefill(self) -> None:
        self.past = self.draw(st.integers(0, self.room))
        self.texts += [f"prefill {self.past}", "bind refresh=1"]

    def _decode(self) -> None:
        if self.past < self.room:
            self.texts.append(f"decode{self.draw(st.sampled_from(('', ' splits=3', ' into=1')))}")
            self.past += 1

    def _cut(self) -> None:
        self.past = self.draw(st.integers(0, self.past))
        self.texts.append(f"cut {self.past}")

    def _unbind(self) -> None:
        self.texts.append("unbind")

    def _bind(self) -> None:
        self.texts.append("bind")


def _drawn(draw: st.DrawFn, room: int) -> Texts:
    drawing = _Drawing(draw, room)
    drawing.fill()
    return drawing.texts


def bounds(draw: st.DrawFn, config: Config) -> Sides:
    """The same on caches of other bounds."""
    other = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True))
    changed = config.changed(bounds="-".join(map(str, sorted(other))))
    texts = _drawn(draw, min(_largest(config), max(other)) - 1)
    return _trace(config, texts), _trace(changed, texts)


def growing(draw: st.DrawFn, config: Config) -> Sides:
    """Decodes after a prefill, or attends on a growing cache."""
    n = draw(st.integers(0, _largest(config)))
    steps = draw(st.lists(st.sampled_from(("", " splits=2")), min_size=1, max_size=_largest(config) + 1 - n))
    one = [f"prefill {n}", *(f"decode{how}" for how in steps)]
    other = [f"append {n} fill=random", *(f"attend 1{how}" for how in steps), "view"]
    alone = config.changed(layers=1)
    return (
        Trace("bucket", alone, tuple(map(operation, (*one, "sync")))),
        Trace("growing", fitted("growing", alone), tuple(map(operation, other))),
    )


def refresh(draw: st.DrawFn, config: Config) -> Sides:
    """A sync and a refresh in between, or not."""
    texts = _drawn(draw, _largest(config) - 1)
    at = draw(st.integers(0, len(texts)))
    between = ["sync", "bind refresh=1"]
    return _trace(config, [*texts[:at], *between, *texts[at:]]), _trace(config, texts)


def block(draw: st.DrawFn, config: Config) -> Sides:
    """A block in between that is unbound, or none."""
    texts = _drawn(draw, _largest(config) - 1)
    at = draw(st.integers(2, len(texts)))  # before the first refresh the host's rows may be newer
    at += texts[at - 1].startswith("prefill")
    between = [f"block {draw(st.integers(1, 4))}", "unbind"]
    return _trace(config, [*texts[:at], *between, *texts[at:]]), _trace(config, texts)


def differ(sides: Sequence[Trace], seen: Sequence[Outcome]) -> str:
    """How the two ends differ; empty if they do not. Rows are known by their positions in the list model, outputs
    of strict attention by their bits where both sides have the same rows."""
    for trace, outcome in zip(sides, seen, strict=True):
        if len(outcome.steps) < len(trace.ops):
            return f"a side failed at step {len(outcome.steps)}"
    rows = [_rows(trace, outcome) for trace, outcome in zip(sides, seen, strict=True)]
    if rows[0] != rows[1]:
        return f"after the left side the layers hold {rows[0]}, after the right side {rows[1]}"
    same = _known(sides[0]) == _known(sides[1]) and {s.level for s in seen} == {"storage"}
    return _unlike(*map(_outputs, seen)) if same else ""


def _unlike(left: list[Array], right: list[Array]) -> str:
    """How the last two outputs of both sides differ."""
    for one, other in zip(left[-2:], right[-2:], strict=True):
        if one.tobytes() != other.tobytes():
            return (
                f"an output begins {one.ravel()[0]:.9g} on the left side, {other.ravel()[0]:.9g} on the right side"
            )
    return ""


def _outputs(seen: Outcome) -> list[Array]:
    """All outputs, in order."""
    found = (step.arrays.get("output") for _, step in seen.steps)
    return [a for a in found if a is not None]


def _known(trace: Trace) -> list[list[int]]:
    """The serials of each layer in the end, by the list model."""
    model = at_the_end(trace).caches["A"]
    found: list[list[int]] = model.layers if trace.profile == "bucket" else [model.tokens]
    return found


def _rows(trace: Trace, seen: Outcome) -> str:
    """What every layer shows in the end; a growing cache is one, and shows its view."""
    known, arrays = _known(trace), seen.steps[-1][1].arrays
    names = [f"state.{i}" for i in range(len(known))] if trace.profile == "bucket" else ["view"]
    found = [visible.one_name_each(arrays.get(f"{n}.k"), arrays.get(f"{n}.v"), seen.book) for n in names]
    return "; ".join(_shown(f, serials) for f, serials in zip(found, known, strict=True))


def _shown(found: list[list[int]] | None, serials: list[int]) -> str:
    """Positions of the rows found."""
    if found is None:
        return "keys and values that do not agree"
    named = [" ".join(str(serials.index(s)) if s in serials else "?" for s in sequence) for sequence in found]
    return ", ".join(dict.fromkeys(named)) or "nothing"
