"""Frequencies of RoPE under a scaling, as whole numbers of 2^-192 turns; see `kvspec.rope.scaling`."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import lru_cache
from math import ceil, floor

from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN

DIGITS = 192
"""Bits after the point of an angle, whose unit is a full circle."""

PI = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"

EXACT = Context(prec=90)

TAU = EXACT.multiply(2, Decimal(PI))


@lru_cache(maxsize=64)
def frequencies(dims: int, base: int, scaling: Scaling | None, far: bool) -> tuple[int, ...]:
    """Give the frequency of each pair per position. `far`: by LongRoPE's long list."""
    with localcontext(EXACT):
        log = Decimal(base).ln()
        if isinstance(scaling, NTK):
            log += Decimal(scaling.alpha).ln() * dims / (dims - 2)
        plain = [(log * (-2 * i) / dims).exp() for i in range(dims // 2)]
        divisors = _divisors(plain, base, scaling, far)
        whole = Decimal(2) ** DIGITS / TAU
        return tuple(int((f / by * whole).to_integral_value()) for f, by in zip(plain, divisors, strict=True))


def _divisors(plain: list[Decimal], base: int, scaling: Scaling | None, far: bool) -> list[Decimal]:
    """Give what each frequency is divided by."""
    if isinstance(scaling, Linear):
        return [Decimal(scaling.factor)] * len(plain)
    if isinstance(scaling, LongRoPE):
        return [Decimal(by) for by in (scaling.long if far else scaling.short)]
    if isinstance(scaling, YaRN):
        first, last = _ramp(scaling, 2 * len(plain), base)
        divided = (_between(Decimal(i), first, last) for i in range(len(plain)))
        return [_divisor(1 - part, scaling.factor) for part in divided]
    if isinstance(scaling, Llama3):
        low, high = Decimal(scaling.low_freq_factor), Decimal(scaling.high_freq_factor)
        return [_divisor(_between(scaling.original * f / TAU, low, high), scaling.factor) for f in plain]
    return [Decimal(1)] * len(plain)


def _between(x: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """Tell which part of the way from low to high x is: 0 before it, 1 behind."""
    if x <= low:
        return Decimal(0)
    return Decimal(1) if x >= high else (x - low) / (high - low)


def _divisor(kept: Decimal, factor: float) -> Decimal:
    """Give the divisor of a frequency of which a part is kept, and the rest divided by the factor."""
    return Decimal(factor) / (kept * (Decimal(factor) - 1) + 1)


def _ramp(scaling: YaRN, dims: int, base: int) -> tuple[Decimal, Decimal]:
    """Give where the ramp begins and ends, in pairs: whole ones, or exactly."""
    log = Decimal(base).ln() * 2
    fast, slow = (
        dims * (scaling.original / (TAU * Decimal(beta))).ln() / log
        for beta in (scaling.beta_fast, scaling.beta_slow)
    )
    if not scaling.exact:
        fast, slow = Decimal(floor(fast)), Decimal(ceil(slow))
    return max(fast, Decimal(0)), min(slow, Decimal(dims - 1))


def sensible(scaling: Scaling | None, dims: int, base: int) -> bool:
    """Tell whether a scaling fits these elements, whose numbers are finite and above 0 and its factor 1 or more."""
    match scaling:
        case NTK():
            return dims >= 4
        case LongRoPE(_, original, short, long):
            return original >= 2 and 2 * len(short) == 2 * len(long) == dims
        case Llama3(_, low, high):
            return low < high
        case YaRN(_, _, fast, slow):
            if base < 2 or fast <= slow:
                return False
            with localcontext(EXACT):
                first, last = _ramp(scaling, dims, base)
            return first <= last
    return True


@lru_cache(maxsize=64)
def attention_factor(scaling: Scaling | None) -> Decimal:
    """Give what cosines and sines are multiplied by."""
    given = getattr(scaling, "attention_factor", None)
    if given is not None or not isinstance(scaling, YaRN | LongRoPE):
        return Decimal(1 if given is None else given)
    with localcontext(EXACT):
        log = Decimal(scaling.factor).ln()
        if isinstance(scaling, YaRN):
            return 1 + log / 10
        return (1 + log / Decimal(scaling.original).ln()).sqrt()
