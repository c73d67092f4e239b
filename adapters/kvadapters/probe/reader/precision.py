"""How far a correct engine's answers may be from float64: derived from its dtype and the form of its rows.

A weight passes at most `ROUNDINGS` roundings from the value of a row to a logit, each of at most `unit` of it.
They are two norms with their gains, four projections, the softmax and its sum, and the residual. The constant that
the weight is divided by passes the same again. A row that is stored in a coarser form adds the unit of this form,
or half its step."""

from __future__ import annotations

from dataclasses import dataclass

from kvspec.errors import BadInput

UNITS = {"f64": 2.0**-53, "f32": 2.0**-24, "tf32": 2.0**-11, "f16": 2.0**-11, "bf16": 2.0**-8}
"""The largest relative error of one rounding."""
SMALLEST = {"f64": 0.0, "f32": 2.0**-126, "tf32": 2.0**-126, "f16": 2.0**-24, "bf16": 2.0**-126}
"""What is smaller may become 0."""
ROWS = {
    **{name: (unit, 0.0) for name, unit in UNITS.items()},
    "fp8_e4m3": (2.0**-4, 2.0**-10),
    "fp8_e5m2": (2.0**-3, 2.0**-17),
    "q8_0": (2.0**-11, 1 / 254),
    "q8": (2.0**-11, 1 / 255),
    "q4_0": (2.0**-11, 1 / 8),
    "q4": (2.0**-11, 1 / 15),
}
"""Forms of rows: the unit of one rounding, and half a step as a share of the sum of a head's row. The sum counts,
because some engines turn rows before they quantise them. `q8_0` and `q4_0` are llama.cpp's; `q8` and `q4` keep the
least and the largest element of a group."""

ROUNDINGS = 18
SCORE_ROUNDINGS = 14
"""Roundings of a score: the norm, the projection, RoPE and the norm of a query, and those of a key."""


@dataclass(frozen=True)
class Precision:
    """What an engine computes in, what form its rows have, and to how much a logprob is rounded."""

    dtype: str = "f32"
    rows: str | None = None
    """A name of `ROWS`; None if rows are stored as they are computed."""
    logprob: float = 2.0**-20
    """The largest error of a logit or logprob up to 32 as it is handed out."""

    def __post_init__(self) -> None:
        for name, known in ((self.dtype, UNITS), (self.rows or self.dtype, ROWS)):
            if name not in known:
                raise BadInput(f"no precision {name!r}; there are {', '.join(known)}")

    @property
    def relative(self) -> float:
        """The largest relative error of a weight."""
        unit, _ = ROWS[self.rows or self.dtype]
        return (1 + UNITS[self.dtype]) ** ROUNDINGS * (1 + unit) - 1

    @property
    def absolute(self) -> float:
        """What a small weight may be read as 0."""
        return 64 * SMALLEST[self.dtype]

    @property
    def step(self) -> float:
        """Half a step of the rows' form, as a share of the sum of a head's row; 0 if there are no steps."""
        return ROWS[self.rows or self.dtype][1]

    def score(self, amplitude: float, fastest: float, furthest: int) -> float:
        """Give the largest error of a distance head's score. `amplitude` is the sum of the shares of its pairs.
        `fastest` is the share of the fastest pair: in f32 its angle at position `furthest` has an error."""
        unit, step = ROWS[self.rows or self.dtype]
        rounded = SCORE_ROUNDINGS * UNITS[self.dtype] + unit + 8 * step  # queries are quantised beside such keys
        return amplitude * rounded + 2 * fastest * furthest * 2.0**-23

    def fingerprint(self, layer: int) -> float:
        """Give the largest error of an element of a layer's fingerprint: a sum of weights that add up to
        `layer`."""
        return max(layer, 1) * (self.relative + self.absolute)
