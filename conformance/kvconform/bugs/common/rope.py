"""Common bugs of RoPE's scalings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kvadapters.reference import Reference
from kvconform.bugs.planting import planted
from kvconform.bugs.real.rope import InSections, Scaled, by_axes, divided, divisors
from kvref.abilities.rope import demand
from kvref.list_model import rope_scaling as listed
from kvspec.contract import Rope
from kvspec.geometry import Array
from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN
from kvspec.rope.sections import Sections


@planted("wrong-position", breaks="ROPE-31")
class FactorTwice(Scaled):
    """Positions are divided by the factor of a linear scaling, and frequencies too."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return Linear(scaling.factor**2) if isinstance(scaling, Linear) else scaling


@planted("wrong-position", breaks="ROPE-33")
class HighFrequenciesToo(Scaled):
    """Llama 3.1 divides all frequencies, fast pairs too."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return Linear(scaling.factor) if isinstance(scaling, Llama3) else scaling


@planted("wrong-position", breaks="ROPE-33")
class BoundsSwapped(Scaled):
    """The parts that Llama 3.1 keeps and divides are each other's between its bounds."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, Llama3):
            return scaling
        kept = (scaling.factor / divisors(rope, dims) - 1) / max(scaling.factor - 1, 1)
        between = (kept > 1e-9) & (kept < 1 - 1e-9)
        kept = np.where(between, 1 - kept, kept)
        return divided(scaling, scaling.factor / (kept * (scaling.factor - 1) + 1))


@planted("wrong-position", breaks="ROPE-34")
class RampReversed(Scaled):
    """The ends of YaRN's ramp are swapped: fast pairs are divided, and slow ones keep their frequencies."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, YaRN):
            return scaling
        kept = (scaling.factor / divisors(rope, dims) - 1) / max(scaling.factor - 1, 1)
        return divided(scaling, scaling.factor / ((1 - kept) * (scaling.factor - 1) + 1))


@planted("wrong-position", breaks="ROPE-34")
class RampOfElements(Scaled):
    """The ramp of YaRN is counted in elements, of which a pair has two."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, YaRN):
            return scaling
        first, last = listed.ramp(scaling, dims, rope.base)
        ramp = np.clip((np.arange(0, dims, 2) - first) / max(last - first, 0.001), 0, 1)
        return divided(scaling, scaling.factor / ((1 - ramp) * (scaling.factor - 1) + 1))


@planted("wrong-position", breaks="ROPE-36")
class FactorsInHalf(Scaled):
    """The lists of LongRoPE are kept in f16."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, LongRoPE):
            return scaling
        short, long = (tuple(float(np.float16(each)) for each in x) for x in (scaling.short, scaling.long))
        return replace(scaling, short=short, long=long)


@planted("wrong-position", breaks="ROPE-32")
class BaseInSingle(Scaled):
    """The raised base of NTK is computed in f32, and so are the powers of it."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, NTK):
            return scaling
        base = np.float32(rope.base) * np.float32(scaling.alpha) ** np.float32(dims / (dims - 2))
        powers = base ** (-np.arange(0, dims, 2).astype(np.float32) / np.float32(dims))
        return divided(scaling, rope.base ** (-np.arange(0, dims, 2) / dims) / powers)


@planted("wrong-position", breaks="ROPE-36")
class LongListEverywhere(Scaled):
    """The long list of LongRoPE turns positions of the first context too, and nothing declares it."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return replace(scaling, short=scaling.long) if isinstance(scaling, LongRoPE) else scaling


@planted("wrong-position", breaks="ROPE-1")
class HalvesUnderAScaling(Reference):
    """The kernel that takes a table of angles knows pairs of halves alone."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        return super().rotate(rows, positions, rope if rope.scaling is None else rope._replace(pairing="neox"))


@planted("wrong-position", breaks="ROPE-40")
class MovedAndLouder(Reference):
    """Rows that are moved are multiplied by the attention factor once more."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        made = super().rotate(rows, positions, rope)
        before, self.last = getattr(self, "last", None), made
        if rows is not before or not isinstance(rope.scaling, YaRN | LongRoPE) or not rows.size:
            return made
        computed = replace(rope.scaling, attention_factor=None)
        return super().rotate(rows, positions, rope._replace(scaling=computed))


@planted("wrong-position", breaks="ROPE-43 ROPE-44")
class WidthAndHeight(InSections):
    """The height is taken for the width, and the width for the height."""

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        return positions[[0, 2, 1]], rope


@planted("wrong-position", breaks="ROPE-43")
class SectionsOfElements(InSections):
    """Sections that follow each other are counted in elements, of which a pair has two."""

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        if sections.interleaved:
            return positions, rope
        first, second = sections.time // 2, (sections.time + sections.height) // 2
        return positions, rope._replace(sections=Sections(first, second - first, sum(sections[:3]) - second))


@planted("wrong-position", breaks="ROPE-43 ROPE-44")
class FirstPatch(InSections):
    """Every row of an image is turned as its first one, but for the time."""

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        return np.where([[True], [False], [False]], positions, positions[:, :1]), rope


@planted("wrong-position", breaks="ROPE-14")
class TimeMovedAlone(Reference):
    """Rows that were turned move in time, and in no image."""

    def __init__(self) -> None:
        self.last: Array | None = None

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        if rows is self.last and rope.sections is not None:
            positions = positions * np.array([[1], [0], [0]])
        self.last = super().rotate(rows, positions, rope)
        return self.last


@planted("missing-refusal", breaks="ROPE-45")
class RestByTime(Reference):
    """Pairs that no section names are turned by the time, and what is too many is dropped."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        dims = rows.shape[-1] if rope.dims is None else rope.dims
        if rope.sections is None or rows.size == 0 or dims < 2:
            return super().rotate(rows, positions, rope)
        demand(rows, positions, rope._replace(sections=Sections(dims // 2, 0, 0)))
        axes = listed.axes(rope, dims)
        axes[max(0, sum(rope.sections[:3])) :] = 0
        return by_axes(self, rows, positions, rope, lambda pair: int(axes[pair]))


@planted("wrong-position", breaks="ROPE-42")
class BeginRounded(Scaled):
    """The ramp of YaRN begins at a whole pair, and ends where it is told to."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, YaRN) or not scaling.exact:
            return scaling
        first, last = listed.ramp(scaling, dims, rope.base)
        ramp = np.clip((np.arange(dims // 2) - np.floor(first)) / (last - np.floor(first) + 1e-9), 0, 1)
        return divided(scaling, scaling.factor / ((1 - ramp) * (scaling.factor - 1) + 1))
