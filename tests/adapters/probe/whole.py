"""Whole engines as adapters: the probe's own network behind a list of tokens, right or with a fault."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kvadapters.probe.model import Batched, Model
from kvadapters.probe.model import from_model as functions
from kvadapters.probe.sessions import Engine, Wanted, batch_of, from_model, pool_of
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


def sunk(wanted: Wanted, kept: int = 0) -> Model:
    """The oldest rows stay beside a window that counts them; or `kept` more of them."""
    sinks, window = (wanted.config.sinks or 0) + kept, wanted.config.window or 0

    def decode(cache: Cache, tokens: list[int]) -> Any:
        cache.extend(tokens)
        query, row = np.arange(len(cache))[:, None], np.arange(len(cache))
        near = row > query - window + (wanted.config.sinks or 0)
        mask = (row <= query) & (near | (row < sinks))
        network = wanted.probe.network
        return network.logits(network.hidden(cache, masks={0: mask})[-len(tokens) :])

    return functions(list, decode, partial(rewind, window), list)


sink = from_model("whole-sink", "sink", Engine(sunk), CUT - {"drafts"}, also=("counted", "kept"))
forgets_a_sink = from_model(
    "whole-forgets-a-sink", "sink", Engine(partial(sunk, kept=-1)), CUT - {"drafts"}, also=("counted", "kept")
)
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


Texts = list[Cache]


def batched(
    wanted: Wanted,
    trim: Callable[[Texts, Sequence[int]], None] | None = None,
    sees: Callable[[Cache, Texts], Cache] = lambda text, texts: text,
    order: Callable[[Sequence[int]], Sequence[int]] = lambda order: order,
) -> Batched:
    """Sequences that are computed together. `sees` says what is attended to where some are padded."""
    network = wanted.probe.network

    def feed(texts: Texts, tokens: Sequence[list[int]], side: str) -> list[Any]:
        for text, of in zip(texts, tokens, strict=True):
            text.extend(of)
        uneven = len(set(map(len, tokens))) > 1
        asked = [network.hidden(sees(text, texts) if uneven else text) if text else [] for text in texts]
        return [network.logits(h[-len(of) :]) if of else () for h, of in zip(asked, tokens, strict=True)]

    def cut(texts: Texts, counts: Sequence[int]) -> None:
        for text, n in zip(texts, counts, strict=True):
            del text[len(text) - n :]

    def arranged(texts: Texts, asked: Sequence[int]) -> Texts:
        return [list(texts[s]) for s in order(asked)]

    return Batched(lambda n: [[] for _ in range(n)], feed, trim or cut, arranged, copy.deepcopy)


def alike(texts: Texts, counts: Sequence[int]) -> None:
    """All sequences are trimmed by the first one's number."""
    for text in texts:
        del text[max(0, len(text) - counts[0]) :]


def beside(text: Cache, texts: Texts) -> Cache:
    """Where some are padded, a sequence sees the first token of another one."""
    other = next((other for other in texts if other and other is not text), [])
    return [*other[:1], *text]


batch = batch_of("whole-batch", Engine(batched))
trims_alike = batch_of("whole-trims-alike", Engine(partial(batched, trim=alike)))
sees_others = batch_of("whole-sees-others", Engine(partial(batched, sees=beside)))
keeps_its_order = batch_of("whole-keeps-its-order", Engine(partial(batched, order=sorted)))
pool = pool_of("whole-pool", Engine(sequences))
forks_share = pool_of("whole-forks-share", Engine(partial(sequences, copy=lambda cache: cache)))
