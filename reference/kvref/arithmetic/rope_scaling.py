"""The frequencies and factors of RoPE under a scaling, as exact as angles are; see `kvspec.rope.scaling`."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from functools import lru_cache

from kvref.arithmetic.rope_angles import EXACT, frequency, quarter
from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN

ONE, ZERO = Decimal(1), Decimal(0)


@lru_cache(maxsize=4096)
def scaled(pair: int, dims: int, base: int, scaling: Scaling | None, far: bool) -> Decimal:
    """The angle by which pair i turns from one position to the next. `far`: by the long list of LongRoPE."""
    with localcontext(EXACT):
        f = frequency(pair, dims, base)
        match scaling:
            case Linear(factor):
                return f / Decimal(factor)
            case NTK(alpha):
                return frequency(pair, dims, base * (Decimal(alpha).ln() * dims / (dims - 2)).exp())
            case LongRoPE():
                return f / Decimal((scaling.long if far else scaling.short)[pair])
            case Llama3():
                return f * _mean(_kept_by_wavelength(f, scaling), scaling.factor)
            case YaRN():
                return f * _mean(1 - _part(Decimal(pair), *ends(scaling, dims, base)), scaling.factor)
        return f


def _mean(kept: Decimal, factor: float) -> Decimal:
    """Of a frequency this part is kept, and the rest divided by the factor."""
    return kept + (1 - kept) / Decimal(factor)


def _part(x: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """How far x is from low to high: 0 up to low, 1 from high on."""
    if low == high:
        return ONE if x > low else ZERO
    return min(max((x - low) / (high - low), ZERO), ONE)


def _kept_by_wavelength(f: Decimal, scaling: Llama3) -> Decimal:
    turns = scaling.original * f / (4 * quarter())
    return _part(turns, Decimal(scaling.low_freq_factor), Decimal(scaling.high_freq_factor))


def ends(scaling: YaRN, dims: int, base: int) -> tuple[Decimal, Decimal]:
    """The last pair that YaRN keeps, and the first that it divides whole, if the first is not behind the second. An
    exact ramp ends between pairs."""
    with localcontext(EXACT):
        low, high = (_turning(beta, scaling, dims, base) for beta in (scaling.beta_fast, scaling.beta_slow))
        if not scaling.exact:
            low, high = low.to_integral_value(ROUND_FLOOR), high.to_integral_value(ROUND_CEILING)
        return max(low, ZERO), min(high, Decimal(dims - 1))


def _turning(beta: float, scaling: YaRN, dims: int, base: int) -> Decimal:
    """The number of the pair, whole or not, that turns so many times in the original length."""
    turns = scaling.original / (4 * quarter() * Decimal(beta))
    return dims * turns.ln() / (2 * Decimal(base).ln())


@lru_cache(maxsize=256)
def factor(scaling: Scaling | None) -> Decimal:
    """What cosines and sines are multiplied by."""
    if not isinstance(scaling, YaRN | LongRoPE):
        return ONE
    if scaling.attention_factor is not None:
        return Decimal(scaling.attention_factor)
    with localcontext(EXACT):
        log = Decimal(scaling.factor).ln()
        if isinstance(scaling, YaRN):
            return log / 10 + 1
        return (1 + log / Decimal(scaling.original).ln()).sqrt()
