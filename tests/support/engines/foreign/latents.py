"""Latent rows, attended to the plain way: keys and values of all heads are made of latents for each attend.

Written from the text of the chapter alone. The latents and the rests lie apart, as released models hand them to
their caches. The matrices of the heads are orthogonal: so queries that were absorbed can be taken apart again, and
outputs put back. All arithmetic is that of float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from support.engines.foreign import Foreign, attention, rotating
from support.engines.foreign.demands import want


def matrices(heads: int, width: int, seed: int) -> Any:
    """An orthogonal matrix `[width, width]` of each head."""
    drawn = np.random.default_rng(seed).standard_normal((heads, width, width))
    return np.linalg.qr(drawn)[0]


class Latents(rotating.Cache):
    """Latents `[B, H, rows, v_dim]` and rests behind them."""

    def __init__(self, numbers: Any, config: Any) -> None:
        want(config.v_dim <= config.k_dim, f"values of {config.v_dim} in keys of {config.k_dim}")
        super().__init__(numbers, config)
        self.values, self.keys = self.parts(self.keys, config.v_dim)
        self.width = config.v_dim

    def parts(self, rows: Any, width: int) -> tuple[Any, Any]:
        """The latents, and the rests."""
        return rows[..., :width].copy(), rows[..., width:].copy()

    def append(self, keys: Any, values: Any) -> None:
        """Join new rows; the latents are taken from the keys."""
        want(keys.shape[2] == values.shape[2], "other numbers of keys and of values")
        latents, rests = self.parts(keys, self.width)
        super().append(rests, latents)

    def read(self, what: str) -> Pair:
        """All rows."""
        return Pair(np.concatenate([self.values, self.keys], 3), self.values.copy())

    def attend(self, queries: Any, keys: Any, values: Any, how: Any, out: Any = None, of: Any = None) -> Any:
        """Turn the rests, append, make keys and values of each head, and attend to these."""
        if how.rope is not None:
            at = self.lengths().offset + np.arange(keys.shape[2])
            queries, keys = (self.turned(rows, at, how.rope) for rows in (queries, keys))
        self.append(keys, values)
        heads, rows = queries.shape[1], self.keys.shape[2]
        latents, rests = (
            a.astype(np.float64).repeat(heads // self.keys.shape[1], 1) for a in (self.values, self.keys)
        )
        to_keys, to_values = (matrices(heads, self.width, seed) for seed in (1, 2))
        asked, turned = self.parts(queries.astype(np.float64), self.width)
        scores = (asked @ to_keys) @ (latents @ to_keys).swapaxes(2, 3) + turned @ rests.swapaxes(2, 3)
        scores = scores * self.scale(queries.shape[3], how.scale)
        if how.softcap:
            scores = how.softcap * np.tanh(scores / how.softcap)
        scores = scores + sum(self.added(part, queries.shape[2], rows) for part in how.through)
        weights = np.exp(scores - scores.max(3, keepdims=True))
        means = weights / weights.sum(3, keepdims=True) @ (latents @ to_values)
        return (means @ to_values.swapaxes(1, 2)).astype(np.float32)

    def turned(self, rows: Any, positions: Any, rope: Any) -> Any:
        """Rows whose rest is turned."""
        latents, rests = self.parts(rows, self.width)
        return np.concatenate([latents, rotating.turned(rests, positions, rope)], 3)


class Rows(rotating.Cache):
    """Rows of no form."""

    def read(self, what: str) -> Pair:
        """All rows."""
        return Pair(self.keys.copy(), self.values.copy())


class PlainWay(attention.Float64):
    """The adapter."""

    CACHE = Latents

    def describe(self) -> dict[str, Any]:
        """What it claims: latent rows, and no other form."""
        chapters = {**super().describe()["chapters"], "rope": "visible", "forms": "visible"}
        chapters["growing"] = {"level": "visible", "with": ["offset", "batch", "step", "view", "bits"]}
        return {"name": "plain-way", "chapters": chapters, "limits": {"form": ["latent"]}}

    def open(self, kind: str, config: Any) -> Any:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return (self.CACHE if config.form else Rows)(self.NUMBERS, config)

    rotate = rotating.Complex.rotate


class TurnedFromTheFirst(Latents):
    """Frequencies are counted from the first element of the row."""

    def turned(self, rows: Any, positions: Any, rope: Any) -> Any:
        latents, _ = self.parts(rows, self.width)
        _, rests = self.parts(rotating.turned(rows, positions, rope), self.width)
        return np.concatenate([latents, rests], 3)


class PlainWayFromTheFirst(PlainWay):
    CACHE = TurnedFromTheFirst


class Unabsorbed(Latents):
    """The rest of a key is made by the head's matrix too, as if it were a latent."""

    def append(self, keys: Any, values: Any) -> None:
        super().append(keys[..., ::-1], values)


class PlainWayBackwards(PlainWay):
    CACHE = Unabsorbed


FOREIGN = (Foreign("latents:PlainWay", ("forms",), "latent rows, whose keys and values are made for each attend"),)
WRONG = {"latents:PlainWayFromTheFirst": ["ROW-22"], "latents:PlainWayBackwards": ["ROW-20"]}
