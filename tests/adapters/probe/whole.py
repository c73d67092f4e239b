"""Whole engines as adapters: the probe's own network behind a list of tokens, right or with a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from kvadapters.probe.model import Model
from kvadapters.probe.model import from_model as functions
from kvadapters.probe.sessions import Engine, Wanted, from_model, pool_of
from kvadapters.probe.views import View

Cache = list[int]
CUT = frozenset({"rewind", "copy", "drafts"})


def model(wanted: Wanted, view: View | None = None, skips: Callable[[int], int] = lambda _: 0) -> Model:
    """The network, whose layers all have another view, or whose positions jump by `skips`."""
    network, layers = wanted.probe.network, range(len(wanted.probe.layout.layers))

    def decode(cache: Cache, tokens: list[int]) -> Any:
        cache.extend(tokens)
        masks = {layer: view.sees(len(cache)) for layer in layers} if view else {}
        positions = [at + skips(at) for at in range(len(cache))]
        return network.logits(network.hidden(cache, masks=masks, positions=positions)[-len(tokens) :])

    return functions(list, decode, partial(rewind, wanted.config.window), list)


def rewind(window: int | None, cache: Cache, n: int) -> None:
    """Drop the newest tokens. A full ring has dropped rows, as the spec's default has it."""
    if n > len(cache) or (window and len(cache) > window):
        raise ValueError("there are not so many")
    del cache[len(cache) - n :]


def wide(wanted: Wanted) -> Model:
    """A window is one row too wide."""
    assert wanted.config.window is not None
    return model(wanted, View("window", wanted.config.window + 1))


def keeps(wanted: Wanted) -> Model:
    """A rewind keeps the oldest of the rows that it is to drop."""
    return replace(model(wanted), rewind=lambda cache, n: rewind(None, cache, n - 1))


def shared(wanted: Wanted) -> Model:
    """A copy is the cache itself."""
    return replace(model(wanted), copy=lambda cache: cache)


def moved(wanted: Wanted) -> Model:
    """From the fourth row on, positions are one too high."""
    return model(wanted, skips=lambda at: int(at >= 3))


growing = from_model("whole", "growing", Engine(model), CUT)
ring = from_model("whole-ring", "ring", Engine(model), CUT)
hybrid = from_model("whole-hybrid", "ring", Engine(model, hybrid=True), CUT)
too_wide = from_model("whole-too-wide", "ring", Engine(wide), CUT)
keeps_a_row = from_model("whole-keeps-a-row", "growing", Engine(keeps), CUT)
shares = from_model("whole-shares", "growing", Engine(shared), CUT)
jumps = from_model("whole-jumps", "growing", Engine(moved), CUT)


def sequences(wanted: Wanted, copy: Callable[[Cache], Cache] = list) -> Model:
    """Sequences beside each other."""
    return replace(model(wanted), beside=lambda _: [], copy=copy)


pool = pool_of("whole-pool", Engine(sequences))
forks_share = pool_of("whole-forks-share", Engine(partial(sequences, copy=lambda cache: cache)))
