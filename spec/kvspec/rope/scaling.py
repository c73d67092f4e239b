"""Scalings of RoPE: how models that were trained on a short context change its frequencies for a longer one.

A scaling is written by its name and its numbers, with colons between them. With f for the frequency base^(-2i/dims)
of pair i without a scaling:

- `linear:F`: f / F. (Chen et al., Extending Context Window of LLMs via Positional Interpolation.)
- `ntk:A`: the base becomes base * A^(dims / (dims - 2)). (NTK-aware RoPE; A is called alpha.)
- `llama3:F:LOW:HIGH:N`: f / F for waves longer than N / LOW, and f for those shorter than N / HIGH. Between them
  it is a mean, by where N / wavelength lies between LOW and HIGH. (Llama 3.1.)
- `yarn:F:N:FAST:SLOW:M`: f for pairs that turn more than FAST times in N positions, and f / F for those that turn
  less than SLOW times. Between them it is a mean by the number of the pair. Cosine and sine are multiplied by M.
  FAST and SLOW are 32 and 1, and M is 0.1 ln F + 1, unless they are said. (Peng et al., YaRN.) The ends of the
  mean are rounded to whole pairs, unless `:exact` stands behind. (gpt-oss.)
- `longrope:F:N:S,S..:L,L..:M`: f / S for positions below N, and f / L for the others, with a number for each pair.
  Cosine and sine are multiplied by M, by default sqrt(1 + ln F / ln N). (Ding et al., LongRoPE.) A list has at
  most 256 numbers.
- `none`: f.

The chapter ROPE says each to the bit, and what is refused.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache

from kvspec.operations.texts import SCALING


@dataclass(frozen=True)
class Linear:
    """Every frequency divided by the factor."""

    factor: float


@dataclass(frozen=True)
class NTK:
    """The base times alpha^(dims / (dims - 2))."""

    alpha: float


@dataclass(frozen=True)
class Llama3:
    """Frequencies of long waves divided by the factor."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original: int
    """The length of context, in tokens, that the model was trained on first."""


@dataclass(frozen=True)
class YaRN:
    """Frequencies of slow pairs divided by the factor; cosine and sine times the attention factor."""

    factor: float
    original: int
    """The length of context, in tokens, that the model was trained on first."""
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    """None: 0.1 ln(factor) + 1."""
    exact: bool = field(default=False, kw_only=True)
    """Whether the ramp ends between pairs, and not at whole ones."""


@dataclass(frozen=True)
class LongRoPE:
    """Frequencies divided by a number for each pair, of two lists; cosine and sine times the attention factor."""

    factor: float
    original: int
    """The length of context, in tokens, that the model was trained on first."""
    short: tuple[float, ...]
    """For positions below `original`."""
    long: tuple[float, ...]
    """For the others."""
    attention_factor: float | None = None
    """None: sqrt(1 + ln(factor) / ln(original))."""


Scaling = Linear | NTK | Llama3 | YaRN | LongRoPE


@lru_cache(maxsize=256)
def parsed(text: str) -> Scaling | None:
    """Read a text that `SCALING` describes; None for `none`. Raises ValueError for any other text."""
    if not re.fullmatch(SCALING, text):
        raise ValueError(f"{text!r} is no scaling of RoPE")
    name, *parts = text.split(":")
    if name == "none":
        return None
    if name == "longrope":
        short, long = (tuple(map(float, part.split(","))) for part in parts[2:4])
        return LongRoPE(float(parts[0]), int(parts[1]), short, long, *map(float, parts[4:]))
    if name == "yarn":
        exact = parts[-1] == "exact"
        return YaRN(float(parts[0]), int(parts[1]), *map(float, parts[2 : len(parts) - exact]), exact=exact)
    if name == "llama3":
        factor, low, high = map(float, parts[:3])
        return Llama3(factor, low, high, int(parts[3]))
    return (Linear if name == "linear" else NTK)(float(parts[0]))


def again(scaling: Scaling | None) -> Scaling | None:
    """Give the scaling of a second turn: rows that were turned have the attention factor already."""
    return replace(scaling, attention_factor=1.0) if isinstance(scaling, YaRN | LongRoPE) else scaling


def numbers(scaling: Scaling) -> list[float]:
    """Give all numbers that it has, the factor first, those of lists one by one."""
    told = [value if isinstance(value, tuple) else (value,) for value in astuple(scaling)]
    return [x for values in told for x in values if x is not None and not isinstance(x, bool)]
