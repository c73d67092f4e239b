"""What a correct engine's queries see, from the same network in float64, and what its rows carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.arrays import Float64, Mask
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.heads import DISTANCE, MATCH
from kvadapters.probe.linear import Linear, newest
from kvadapters.probe.network import Layer
from kvadapters.probe.views import View

BEYOND = 64
"""How far beyond the length of the text a row's distance is looked for, ahead of the query and behind it."""


@dataclass(frozen=True)
class ExpectedLayer:
    """What a layer does with a text of n tokens."""

    sees: Mask
    """What each query must see, [n, n]."""
    rows: Float64
    """Rows, [n, ids + 1 + prints]: the token, a 1, the fingerprint. A norm makes each a little larger or
    smaller."""
    shares: Float64
    """What the weights of each query must sum to, [n]: below 1 where a sink takes its share."""
    gains: Float64
    """How much each token's query and key differ from those of the constant alone, [n]."""
    curve: Float64
    """Scores of distance heads at a gain of 1, from distance `-beyond` on. For a linear layer, the logarithms of
    weights."""
    beyond: int
    match: Float64
    """Scores of match heads between all queries and rows, [n, n]; [0, 0] where a layer has none."""
    exchanged: Callable[[int, int], Float64]
    """Gives the scores of match heads between a query and a row, if the row's key were that of each id, [ids]."""

    def scores(self, query: int, rows: NDArray[np.integer]) -> Float64:
        """Give the scores between a query and rows, if they stood at each distance of the curve, [rows,
        distances]."""
        scores: Float64 = np.outer(self.gains[query] * self.gains[rows], self.curve)
        return scores

    def score(self, query: int, row: int) -> float:
        """Give the score between a query and a row of the text."""
        return float(self.scores(query, np.array([row]))[0, query - row + self.beyond])


def expected(probe: Probe, tokens: Sequence[int]) -> list[ExpectedLayer]:
    """Compute what every layer must do with a text."""
    states = probe.network.states(tokens)
    return [_block(probe, tokens, states, number) for number in range(len(probe.layout.blocks))]


def _block(probe: Probe, tokens: Sequence[int], states: Sequence[Float64], at: int) -> ExpectedLayer:
    layout, network = probe.layout, probe.network
    (number, view), block = layout.blocks[at], layout.block(at)
    below, hidden, sees = states[number], states[-1], view.sees(len(tokens))
    if view.kind == "linear":
        sees = newest(sees, np.asarray(tokens))
    rows = network.values(number, below)
    rows = rows[:, :: layout.group] if probe.architecture.latent else rows
    beyond = len(hidden) + BEYOND
    alone = np.zeros(layout.hidden)
    alone[layout.constant] = hidden[0, layout.constant]
    if layout.match:  # keys have a code too
        alone[tokens[0]] = hidden[0, tokens[0]]
    matches = layout.match and isinstance(network.layers[number], Layer)
    norms, at_all = np.sqrt((below**2).mean(-1)), np.arange(len(tokens))
    return ExpectedLayer(
        sees,
        rows.reshape(len(rows), -1),
        hidden[:, block.sums[0]] / layout.ballast,
        np.ones(len(hidden)) if probe.architecture.norms else np.sqrt((alone**2).mean()) / norms,
        _curve(probe, number, view, alone, np.arange(-beyond, beyond + 1)),
        beyond,
        network.met(number, MATCH, below, below, at_all, at_all) if matches else np.zeros((0, 0)),
        partial(_exchanged, probe, number, below),
    )


def _exchanged(probe: Probe, number: int, below: Float64, query: int, row: int) -> Float64:
    ids = np.arange(probe.layout.ids)
    kept = np.repeat(below[row, None], len(ids), axis=0)
    token = kept[0, : len(ids)].max()
    kept[:, : len(ids)] = 0
    kept[ids, ids] = token
    asked, at = below[query, None], np.array([query])
    scores: Float64 = probe.network.met(number, MATCH, asked, kept, at, np.full(len(ids), row))[0]
    return scores


def _curve(probe: Probe, number: int, view: View, alone: Float64, distances: NDArray[np.integer]) -> Float64:
    """Give scores of distance heads at distances, where `alone` is the constant's hidden state."""
    layer = probe.network.layers[number]
    if isinstance(layer, Linear):
        return layer.curve(distances, view.kind == "linear")
    return probe.network.scores(number, alone, DISTANCE, distances)
