"""What a correct engine's queries see, from the same network in float64, and what its rows carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.network import Float64, Mask

BEYOND = 64
"""How much further than the text is long a row's distance is looked for, ahead of the query and behind it."""


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
    """By what each token's query and key differ from those of the constant alone, [n]."""
    curve: Float64
    """Scores of distance heads at a gain of 1, from distance `-beyond` on."""
    beyond: int

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
    hidden = probe.network.hidden(tokens)
    return [_layer(probe, hidden, number) for number in range(len(probe.layout.layers))]


def _layer(probe: Probe, hidden: Float64, number: int) -> ExpectedLayer:
    layout, network = probe.layout, probe.network
    block, below = layout.block(number), hidden.copy()
    below[:, block.seen.start :] = 0  # blocks are written in order: the later ones are not there yet
    rows = network.values(number, below)
    rows = rows[:, :: layout.group] if probe.architecture.latent else rows
    beyond = len(hidden) + BEYOND
    alone = np.zeros(layout.hidden)
    alone[layout.constant] = hidden[0, layout.constant]
    norms = np.sqrt((below**2).mean(-1))
    return ExpectedLayer(
        layout.layers[number].sees(len(hidden)),
        rows.reshape(len(rows), -1),
        hidden[:, block.sums[0]] / layout.ballast,
        np.ones(len(hidden)) if probe.architecture.norms else alone.max() / layout.hidden**0.5 / norms,
        network.scores(number, alone, 1, np.arange(-beyond, beyond + 1)),
        beyond,
    )
