"""Bugs of the catalogue that are bugs of RoPE and of positions, planted in the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kvadapters.reference import Reference
from kvconform.bugs.planting import planted
from kvref.abilities.rope import demand
from kvref.list_model import rope_scaling as listed
from kvspec.contract import Rope
from kvspec.geometry import Array
from kvspec.rope.scaling import NTK, Llama3, LongRoPE, Scaling, YaRN
from kvspec.rope.sections import Sections


@planted("ROPE-05", breaks="ROPE-14")
class SecondDifferenceAlone(Reference):
    """A second rotation is applied to the original rows, so that the first one is lost."""

    def __init__(self) -> None:
        self.before: tuple[Array, Array] | None = None

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        given, again = rows, self.before is not None and rows is self.before[1]
        if again and self.before is not None:
            given = self.before[0]
        made = super().rotate(given, positions, rope)
        self.before = None if again else (rows, made)
        return made


@planted("ROPE-09", breaks="ROPE-3", anomaly="desynchronised-layers")
class OneBase(Reference):
    """Every layer uses the base of the first layer that rotates."""

    base = 0

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        self.base = self.base or rope.base
        return super().rotate(rows, positions, rope._replace(base=self.base if rope.base > 0 else rope.base))


@planted("DTYPE-03", breaks="ROPE-17")
class RoundedBefore(Reference):
    """Rows in bf16 are rounded to 13 binary digits first, and again when they are stored."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        if rows.dtype.itemsize != 2 or rows.dtype == np.float16:
            return super().rotate(rows, positions, rope)
        wide, step = super().rotate(rows.astype(np.float32), positions, rope).view(np.uint32), np.uint32(1 << 11)
        twice = ((wide + step // 2 - 1 + (wide // step & 1)) // step * step).view(np.float32)
        return np.where((positions == 0)[:, None], rows, twice.astype(rows.dtype))


def by_axes(adapter: Reference, rows: Array, positions: Array, rope: Rope, axis: Callable[[int], int]) -> Array:
    """Rows turned in sections, each pair by the position that a function names by its number."""
    made, dims = rows.copy(), rope.dims or rows.shape[-1]
    turned = [Reference.rotate(adapter, rows, each, rope._replace(sections=None)) for each in positions]
    for pair in range(dims // 2):
        at = [2 * pair, 2 * pair + 1] if rope.pairing == "norm" else [pair, pair + dims // 2]
        made[..., at] = turned[axis(pair)][..., at]
    return made


class Scaled(Reference):
    """Turns rows by another scaling than the one that is asked for, where any is."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        if rope.scaling is None or rows.size == 0:
            return super().rotate(rows, positions, rope)
        dims = demand(rows, positions, rope)
        wrong = self.wrong(rope.scaling, dims, rope, positions)
        return super().rotate(rows, positions, rope._replace(scaling=wrong))

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        raise NotImplementedError


def divided(scaling: Scaling, divisors: Array) -> LongRoPE:
    """The scaling that divides the frequency of each pair by these numbers, at every position."""
    by = tuple(map(float, divisors))
    return LongRoPE(1, 2, by, by, listed.factor(scaling))


def divisors(rope: Rope, dims: int) -> Array:
    """What the frequency of each pair is divided by under a scaling without lists."""
    here = np.zeros(1, np.int64)
    by = listed.frequencies(rope._replace(scaling=None), dims, here) / listed.frequencies(rope, dims, here)
    return np.asarray(by[0])


@planted("ROPE-10", breaks="ROPE-35 ROPE-40")
class FactorOfTheFactor(Scaled):
    """An attention factor that is said multiplies the computed one."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, YaRN) or scaling.attention_factor is None:
            return scaling
        return replace(scaling, attention_factor=scaling.attention_factor * (1 + np.log(scaling.factor) / 10))


@planted("ROPE-11", breaks="ROPE-35 ROPE-40")
class FactorNotRead(Scaled):
    """An attention factor that is said is not read: it is computed."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return replace(scaling, attention_factor=None) if isinstance(scaling, YaRN | LongRoPE) else scaling


@planted("ROPE-12", breaks="ROPE-35")
class NoFactor(Scaled):
    """YaRN changes frequencies, and its attention factor is 1."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return replace(scaling, attention_factor=1.0) if isinstance(scaling, YaRN) else scaling


@planted("ROPE-13", breaks="ROPE-33")
class ReadAndNotUsed(Scaled):
    """The scaling of Llama 3.1 is read and checked, and rows are turned without it."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return None if isinstance(scaling, Llama3) else scaling


@planted("ROPE-14", breaks="ROPE-33")
class ByWavelength(Scaled):
    """Between its two bands Llama 3.1 weighs frequencies by their wavelengths, and not by their turns."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, Llama3):
            return scaling
        waves = 2 * np.pi * rope.base ** (np.arange(0, dims, 2) / dims)
        short, long = scaling.original / scaling.high_freq_factor, scaling.original / scaling.low_freq_factor
        weight = np.clip((waves - short) / (long - short), 0, 1)
        return divided(scaling, weight * scaling.factor + 1 - weight)


@planted("ROPE-15", breaks="ROPE-36")
class EachCallChooses(Scaled):
    """The last position of a call chooses the list of LongRoPE for all its rows, and nothing declares it."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        if not isinstance(scaling, LongRoPE):
            return scaling
        by = scaling.long if positions.max() >= scaling.original else scaling.short
        return replace(scaling, short=by, long=by)


@planted("ROPE-16", breaks="ROPE-32")
class TwicePositions(Scaled):
    """Beside the base of NTK a scale of 2 is set, by which positions are multiplied."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return divided(scaling, divisors(rope, dims) / 2) if isinstance(scaling, NTK) else scaling


@planted("ROPE-17", breaks="ROPE-34 ROPE-33")
class NewLinesWithoutScaling(Reference):
    """Where the table of angles is made longer than the first context, its new lines have no scaling."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        made = super().rotate(rows, positions, rope)
        if (
            isinstance(rope.scaling, YaRN | Llama3)
            and rows.size
            and (new := positions >= rope.scaling.original).any()
        ):
            made[:, :, new] = super().rotate(rows[:, :, new], positions[new], rope._replace(scaling=None))
        return made


@planted("ROPE-18", breaks="ROPE-38")
class ListsOfAnyLength(Reference):
    """A list of LongRoPE that is too short goes on with its last number, and one that is too long is cut."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        scaling, dims = rope.scaling, rows.shape[-1] if rope.dims is None else rope.dims
        if isinstance(scaling, LongRoPE) and dims > 1:
            short, long = ((x + (x[-1],) * dims)[: dims // 2] for x in (scaling.short, scaling.long))
            rope = rope._replace(scaling=replace(scaling, short=short, long=long))
        return super().rotate(rows, positions, rope)


@planted("ROPE-19", breaks="ROPE-42")
class AlwaysRounded(Scaled):
    """The ramp of YaRN ends at whole pairs, whatever is said."""

    def wrong(self, scaling: Scaling, dims: int, rope: Rope, positions: Array) -> Scaling | None:
        return replace(scaling, exact=False) if isinstance(scaling, YaRN) else scaling


class InSections(Reference):
    """Turns rows of three positions by other sections or positions than those that are asked for."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        if rope.sections is None or rows.size == 0:
            return super().rotate(rows, positions, rope)
        demand(rows, positions, rope)
        return super().rotate(rows, *self.wrong(rope.sections, positions, rope))

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        raise NotImplementedError


@planted("ROPE-20", breaks="ROPE-43 ROPE-44")
class TimeAlone(InSections):
    """A kernel reads one position a row: its time."""

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        return positions[0], rope._replace(sections=None)


@planted("ROPE-21", breaks="ROPE-44")
class OneAfterAnother(InSections):
    """Sections that take turns follow each other."""

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        return positions, rope._replace(sections=sections._replace(interleaved=False))


@planted("ROPE-22", breaks="ROPE-43")
class InTurns(Reference):
    """Sections that follow each other take turns, as those of a newer model do."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        made, sections = super().rotate(rows, positions, rope), rope.sections
        if sections is None or sections.interleaved or rows.size == 0:
            return made
        return by_axes(self, rows, positions, rope, lambda pair: pair % 3 if pair < 3 * sections[pair % 3] else 0)


@planted("ROPE-23", breaks="ROPE-44")
class TurnsToTheEnd(Reference):
    """Sections take turns up to the last pair, beyond what they say."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        made = super().rotate(rows, positions, rope)
        if rope.sections is None or not rope.sections.interleaved or rows.size == 0:
            return made
        return by_axes(self, rows, positions, rope, lambda pair: pair % 3)


@planted("ROPE-24", breaks="ROPE-1 ROPE-44")
class HalvesInSections(InSections):
    """Rows of three positions are turned in halves, whatever the pairing is."""

    def wrong(self, sections: Sections, positions: Array, rope: Rope) -> tuple[Array, Rope]:
        return positions, rope._replace(pairing="neox")
