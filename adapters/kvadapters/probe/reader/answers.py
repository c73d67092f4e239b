"""From what an engine answers to the hidden state that it must have had: the blocks of each layer, with bounds.

Logits, all logprobs, or the top k: a logprob is a logit less a number that is the same for all ids. The zero row
tells this number; where only the top k are known, the two ids of the constant do. An id that is missing among the
top k has at most the least logit that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.arrays import Float64
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.reader.precision import Precision
from kvspec.errors import BadInput

Answers = NDArray[np.floating] | Sequence[Mapping[int, float]]
"""Logits or logprobs [queries, vocabulary], or for each query those of the known ids."""


@dataclass(frozen=True)
class State:
    """Hidden states as far as the answers tell them. `low` and `high` [queries, used] bound each dimension. They
    allow for all roundings on its way but those of the rows' form. `low` is minus infinity for what is not among
    the answers."""

    low: Float64
    high: Float64


def state(probe: Probe, answers: Answers, precision: Precision) -> State:
    """Read hidden states off answers. Raises BadInput."""
    if probe.output != "weights":
        raise BadInput("this probe's output is for tokens alone: read_tokens reads it")
    if isinstance(answers, np.ndarray):
        low, high = _all(probe, answers, precision)
    else:
        parts = [_some(probe, answer, precision) for answer in answers]
        low, high = (np.array([part[side] for part in parts]) for side in (0, 1))
    return _scaled(probe, low, high, precision)


def _all(probe: Probe, answers: NDArray[np.floating], precision: Precision) -> tuple[Float64, Float64]:
    """Bound logits, [queries, vocabulary], by those or logprobs of all ids. Columns behind the last id are
    padding."""
    size = probe.layout.vocabulary
    if answers.ndim != 2 or answers.shape[1] < size:
        raise BadInput(f"answers of shape {answers.shape}; [queries, {size}] are read")
    logits = answers[:, :size].astype(np.float64)
    if not np.isfinite(logits).all():
        raise BadInput("answers that are not finite: nothing can be read off them")
    zero = logits[:, probe.layout.zero, None]
    error = 2 * precision.logprob
    return logits - zero - error, logits - zero + error


def _some(probe: Probe, answer: Mapping[int, float], precision: Precision) -> tuple[Float64, Float64]:
    """Bound logits by the logprobs of some ids: [vocabulary] each."""
    layout, size = probe.layout, probe.layout.vocabulary
    known = {int(i): float(value) for i, value in answer.items() if 0 <= int(i) < size}
    error = precision.logprob
    if layout.zero in known:
        shift, error = known[layout.zero], 2 * error
    elif {layout.one, layout.one + 1} <= known.keys():
        shift, error = 2 * known[layout.one + 1] - known[layout.one], 4 * error
    else:
        raise BadInput(
            f"of ids {layout.zero} or {layout.one} and {layout.one + 1} no logprob is known; ask for more of them"
        )
    least = min(known.values()) - shift
    low, high = np.full(size, -np.inf), np.full(size, least + error)
    for i, value in known.items():
        low[i], high[i] = value - shift - error, value - shift + error
    return low, high


def _scaled(probe: Probe, low: Float64, high: Float64, precision: Precision) -> State:
    """Turn logits into dimensions: the constant's logit tells the last norm."""
    layout, output = probe.layout, probe.network.output
    norm = (low[:, layout.one] + high[:, layout.one]) / 2
    if not (norm > 0).all():
        raise BadInput("the constant's logit is not above 0: this is no answer of this probe")
    blocks = np.arange(layout.ids + 1, layout.used)
    weight = output[layout.id_of(0) + blocks, blocks].astype(np.float64)
    network = probe.network
    constant = float(network.embedding[0, layout.constant]) * network.embedding_factor
    unit = constant * float(output[layout.one, layout.constant]) / norm[:, None] / weight
    low, high = (side[:, layout.id_of(0) + blocks] * unit for side in (low, high))
    spread = (np.abs(np.nan_to_num(low, neginf=0)) + np.abs(high)) / 2 * precision.relative
    pad = ((0, 0), (layout.ids + 1, 0))
    spread += precision.absolute
    return State(np.pad(low - spread, pad), np.pad(high + spread, pad))
