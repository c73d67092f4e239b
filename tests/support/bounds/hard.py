"""Inputs that use up a bound: each is hard for the engine beside it, which computes as an engine may.

A sum that is a little above a power of 2 gains half a digit by every term just above half a digit, and loses it by
every term just below. So a chain of products, and one of weights, can be led astray at each of its steps.
"""

from __future__ import annotations

import numpy as np

from kvref.arithmetic.strict_attention import LOG2E
from kvref.list_model.attention_bound import PLAIN, UNIT, Scoring
from kvref.list_model.rows import U
from kvspec.geometry import Array
from support.bounds.attends import Asked
from support.engines.attention_engines import F32, Case, rounded_sum, stored

DIM, GROUP = 512, 32
"""Elements of a key, and those among them that share a scale in a form."""

LOUD = {"f32": 2.0**8, "f16": 2.0**10, "bf16": 2.0**12}
"""The size of scores that are astray, so that roundings to the dtype are little beside what they lose."""

SMALLEST = {"f32": 1.0, "f16": 2.0**10, "bf16": 1.0}
"""What keys are multiplied by, and queries divided by: f16 has no numbers as small as half a digit of 1."""


def astray(dtype: str = "f32", how: Scoring = PLAIN, form: str = "") -> Asked:
    """Two rows whose scores are alike: that of the first gains at each product, that of the second loses."""
    factor = 1 / np.sqrt(DIM) if how.scale is None else how.scale
    in_powers_of_2 = how.scale is None and not how.softcap  # as strict attention counts them
    keys = np.zeros((2, DIM))
    keys[:, 0], keys[:, GROUP:] = 1, U * (1 + np.array([[1.0], [-1.0]]) * 2.0**-6)
    query = np.full(DIM, LOUD[dtype] / SMALLEST[dtype] / factor / (LOG2E if in_powers_of_2 else 1))
    rows = stored(keys * SMALLEST[dtype], dtype)
    return Asked(Case(F32(query), rows, F32([[1.0] * 2, [-1.0] * 2]), F32([0, 0]), dtype), how, form)


def beside_a_sink() -> Asked:
    """The same beside a learned sink of less than half their weight."""
    return astray(how=Scoring(sinks=(float(F32(LOUD["f32"] / LOG2E)) - 1,)))


def half_digits(rows: int = 512, form: str = "") -> Asked:
    """Weights and products around half a digit of the first row's, which is 1: a product, of a value a little
    above 1, is just more than that, a weight just less."""
    weights = np.full(rows, U * (1 - 2.0**-6))
    weights[0] = 1
    values = np.full((rows, 32), 1 + 2.0**-5)
    return Asked(_weighed(weights, values, "f32"), form=form)


def halfway(dtype: str, rows: int = 20, form: str = "") -> Asked:
    """Weights around the middle of two numbers of the dtype: that of the one row whose value is not 0 is rounded
    up, all others down. The first row weighs 1."""
    weights = np.full(rows, 0.5 * (1 + 0.998 * UNIT[dtype]))
    weights[:2] = 1, 0.5 * (1 + 1.002 * UNIT[dtype])
    values = (np.arange(rows) == 1)[:, None].repeat(32, 1)
    return Asked(_weighed(weights, values, dtype), form=form)


def light() -> Asked:
    """A weight that is cut off to nothing in f16, of a large value."""
    return Asked(_weighed(np.array([1, 0.998 * 2.0**-24]), np.array([[0.0], [60000.0]]), "f16"))


def subnormal() -> Asked:
    """A query below the normal numbers, and keys that bring up what is lost there."""
    query, key = 2.0**-126 * (1 - 2.0**-23), 2.0**124
    return Asked(Case(F32([query]), F32([[key], [-key]]), F32([[1], [-1]]), F32([0, 0]), "f32"))


def arrays(n: int = 64) -> Asked:
    """A mask of n arrays: of the first row each addition loses half a digit, of the second each gains one."""
    added = np.ones((n, 2)) * [1 - 2.0**-6, 1 + 2.0**-6] * 2.0**-13
    added[0] = 2.0**11
    return Asked(Case(F32([1]), F32([[0], [0]]), F32([[-1], [1]]), F32(added), "f32"))


def rising(rows: int = 256) -> Asked:
    """Scores that rise from row to row, so that the maximum grows at each, but hardly; the first row's value alone
    is not 0."""
    added, values = np.arange(rows) * 2.0**-12, (np.arange(rows) == 0)[:, None]
    return Asked(Case(F32([0]), F32(np.zeros((rows, 1))), F32(values), F32(added), "f32"))


def tanh_alone(how: Scoring) -> Asked:
    """Scores whose caps are what they are off by."""
    keys = F32([[1.0], [0.999]])
    return Asked(Case(F32([20.0]), keys, F32([[1.0], [-1.0]]), F32([0, 0]), "f32"), how)


def opposite(how: Scoring) -> Asked:
    """Scores of both signs, of a size at which a tanh of exponentials loses most; a mask makes them alike."""
    capped = how.softcap * np.tanh(4 / how.softcap)
    keys, added = F32([[4.0], [-4.0]]), F32([-capped, capped])
    return Asked(Case(F32([1.0]), keys, F32([[1.0], [-1.0]]), added, "f32"), how)


def _weighed(weights: Array, values: Array, dtype: str) -> Case:
    """Rows that weigh this much beside the first."""
    keys = np.zeros((len(weights), 32))
    return Case(F32(np.zeros(32)), F32(keys), stored(values, dtype), F32(np.log(weights)), dtype)


def one_by_one(asked: Asked) -> Array:
    """Products and weights are added one by one."""
    c = asked.read()
    scores = c.keys @ c.query / np.sqrt(F32(len(c.query))) + c.added
    weights, total = np.exp(scores - scores.max()), F32(0)
    sums = np.zeros(c.values.shape[1], F32)
    for weight, value in zip(weights, c.values, strict=True):
        sums, total = sums + weight * value, total + weight
    return np.asarray(sums / total)


def coarse(asked: Asked) -> Array:
    """A maximum that grows from row to row, by exponentials that are right below the line, and 4 units too large in
    what is above it, as far as one may be off."""
    c, scores = asked.read(), F32(asked.case.added)
    sums, m = np.zeros(c.values.shape[1], F32), scores[0]
    for value, score in zip(c.values, scores, strict=True):
        again = F32(np.exp(min(F32(0), m - score)) * (1 + 4 * U))
        m = max(m, score)
        sums = sums * again + F32(np.exp(score - m)) * value
    return np.asarray(sums / np.exp(scores - m).sum(dtype=np.float64))


def in_the_dtype(asked: Asked) -> Array:
    """Weights are rounded to the dtype before they are summed."""
    return rounded_sum(asked.read())


def cutting_off(asked: Asked) -> Array:
    """Weights are cut off to numbers of f16, toward 0, before they are summed; the small ones among them are whole
    multiples of 2^-24."""
    c = asked.read()
    scores = c.keys @ c.query / np.sqrt(F32(len(c.query))) + c.added
    weights = np.exp(scores - scores.max())
    weights = np.where(weights < 2.0**-14, np.floor(weights * 2.0**24) * F32(2.0**-24), weights)
    return np.asarray(F32(weights) @ F32(c.values) / weights.sum(dtype=F32))


def flushing(asked: Asked) -> Array:
    """Numbers below the normal ones are 0."""
    c = asked.read()
    query, keys = (np.where(np.abs(a) < 2.0**-126, F32(0), a) for a in (c.query, c.keys))
    return rounded_sum(c._replace(query=query, keys=keys))


def added_up(asked: Asked) -> Array:
    """The arrays of a mask are added up before."""
    c = asked.read()
    return rounded_sum(c._replace(added=np.add.accumulate(c.added, dtype=F32)[-1]))


def approximate(asked: Asked) -> Array:
    """A tanh as exact as that of the hardware: too large for the first row, and too small for the others."""
    c, cap = asked.read(), F32(asked.how.softcap)
    off = 1 + F32(0.999 * asked.how.tanh) * F32(np.where(np.arange(len(c.keys)) == 0, 1, -1))
    scores = cap * (np.tanh(c.keys @ c.query / np.sqrt(F32(len(c.query))) / cap) * off)
    weights = np.exp(scores - scores.max())
    return np.asarray(weights @ c.values / weights.sum(dtype=F32))


def far_off(asked: Asked) -> Array:
    """A tanh as far off as one in f32 may be by the chapter's count, 14 u: too large for the first row, and too
    small for the other."""
    c, cap = asked.read(), F32(asked.how.softcap)
    off = F32([14 * U, -14 * U])
    scores = cap * (np.tanh(c.keys @ c.query / np.sqrt(F32(len(c.query))) / cap) + off) + c.added
    weights = np.exp(scores - scores.max())
    return np.asarray(weights @ c.values / weights.sum(dtype=F32))
