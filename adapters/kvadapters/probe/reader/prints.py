"""Compares the fingerprints of the rows that a query saw with those of rows computed in this context."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kvadapters.probe import lora
from kvadapters.probe.arrays import Float64
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.reader.expected import ExpectedLayer
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.reading import Finding, Reading


def bound_of(probe: Probe, precision: Precision, layer: int) -> float:
    """Give the largest error of an element of a layer's fingerprint. An adapter adds to the sums of each layer."""
    return precision.fingerprint(2 * layer + 1 if probe.adapters else layer)


def add(
    reading: Reading, probe: Probe, layer: ExpectedLayer, precision: Precision, low: Float64, high: Float64
) -> Reading:
    """Add what the fingerprint shows, given its bounds as a mean over the rows that were seen, [prints]."""
    mean = _mean(reading, layer)
    if why := _untold(precision, low, mean, reading):
        return replace(reading, untold=(*reading.untold, f"fingerprints{why}"))
    assert mean is not None
    ids = len(mean) - len(low) - 1
    right, bound = mean[ids + 1 :] / mean[ids], bound_of(probe, precision, reading.layer)
    found = (low + high) / 2 - right
    off = float(np.abs(found).max())
    reading = replace(reading, fingerprint=off)
    if np.maximum(low - right, right - high).max() <= bound:
        return reading
    words = (
        "sees a row that was computed in another context: "
        f"its fingerprint is {off:.2g} off, and rounding explains {bound:.1g}"
    )
    if other := _adapter(probe, reading, found, bound):
        words = f"sees {other}; {words}"
    return replace(reading, findings=(*reading.findings, Finding("context", (), words)))


def _adapter(probe: Probe, reading: Reading, off: Float64, bound: float) -> str:
    """Say how many rows were computed with another adapter, if that alone explains what is off."""
    own, rows = lora.pattern(probe.layout, probe.adapter).astype(float), reading.seen or 0
    for name in ("", *lora.ADAPTERS) if probe.adapters else ():
        more = lora.pattern(probe.layout, name) - own
        if name == probe.adapter:
            continue
        count = round(float(off @ more / (more @ more)) * rows)
        if 0 < count <= rows and np.abs(off - more * count / rows).max() <= 2 * bound:
            which = f"with adapter {name}" if name else "without an adapter"
            return f"{count} row{'s' * (count > 1)} that {'were' if count > 1 else 'was'} computed {which}"
    return ""


def _untold(precision: Precision, low: Float64, mean: Float64 | None, reading: Reading) -> str:
    """Say why a fingerprint cannot be told; nothing if it can."""
    if precision.step:
        return " of rows whose form has a step"
    if reading.seen is None:
        return ", as it is not known which rows were seen"
    if mean is None:
        return " of rows that cannot be told apart, or that are not of this text"
    return "" if np.isfinite(low).all() else ": not all of them are among the answers"


def _mean(reading: Reading, layer: ExpectedLayer) -> Float64 | None:
    """Give the mean of the rows that were seen, [ids + 1 + prints]. None if it is not known which rows these
    are."""
    if reading.rows and all(len(row.positions) == row.count for row in reading.rows):
        at = [position for row in reading.rows for position in row.positions]
    elif any(finding.sort in ("extra", "missing") for finding in reading.findings):
        return None
    else:  # ids are repeated, and as often as they must be
        at = list(np.flatnonzero(layer.sees[reading.query]))
    mean: Float64 = layer.rows[at].mean(0)
    return mean
