"""The OpenCL adapter against the reference: every short sequence of operations, each followed by two appends."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from kvspec.geometry import Config
from kvspec.masks import Causal, Window
from support import slow
from support.device.devices import adapter
from support.twins import Op, Twins

Act = Callable[[Twins], object]


def _offset(twins: Twins) -> int:
    return int(twins.sessions[0].caches["A"].offset)


def _do(op: Op) -> Act:
    return lambda twins: twins.do(op)


def _restore_short(twins: Twins) -> None:
    saved = twins.sessions[0].snapshots.get("s")
    twins.do({"op": "restore", "name": "s", "to": saved.stop - 1 if saved else 0})


def _restore(twins: Twins) -> None:
    saved = twins.sessions[0].snapshots.get("s")
    twins.do({"op": "restore", "name": "s", "to": saved.stop if saved else 0})


ACTS: tuple[Act, ...] = (
    lambda t: t.append(1),
    lambda t: t.append(2),
    lambda t: t.append(5),
    lambda t: t.append(0),
    lambda t: t.do({"op": "rewind", "to": _offset(t) - 1}),
    lambda t: t.do({"op": "snapshot", "name": "s", "start": _offset(t) // 2}),
    _restore,
    _restore_short,
)


RINGS = [Config(window=w, step=s) for w, s in ((1, 1), (2, 1), (3, 2), (4, 3))]
BEFORE = [(1,), (4,), (2, 1), (3, 1, 1, 1)]


@pytest.mark.parametrize(("config", "prefix"), slow.one_in(5, itertools.product(RINGS, BEFORE)))
def test_every_short_sequence_on_a_ring(config: Config, prefix: tuple[int, ...]) -> None:
    _every_sequence("ring", config, prefix, 2)


@pytest.mark.slow
def test_every_sequence_of_three_on_a_ring_that_was_passed() -> None:
    _every_sequence("ring", Config(window=3, step=2), (2, 1, 1), 3)


@pytest.mark.parametrize("step", slow.one_in(2, [2, 1, 3, 256]))
def test_every_short_sequence_on_a_growing_cache(step: int) -> None:
    _every_sequence("growing", Config(step=step), (3,), 2)


def _every_sequence(kind: str, config: Config, prefix: tuple[int, ...], depth: int) -> None:
    for acts in itertools.product(ACTS, repeat=depth):
        twins = Twins(adapter())
        twins.open(kind, config)
        for n in prefix:
            twins.append(n)
        for act in acts:
            act(twins)
        twins.append(1)
        twins.mask(Causal(), Window(2))
        twins.append(2)
        twins.do({"op": "view"})


@pytest.mark.parametrize("fields", [{"step": 0}, {"batch": 0}, {"k_dim": -1}, {"window": 0}, {"dtype": "f64"}])
@pytest.mark.parametrize("kind", ["growing", "ring"])
def test_a_config_no_cache_may_have_is_refused(kind: str, fields: dict[str, object]) -> None:
    twins = Twins(adapter())
    assert twins.open(kind, Config(**{"window": 2} | fields)).result == "refused"  # type: ignore[arg-type]


def test_a_ring_without_a_window_is_refused_and_a_growing_cache_may_have_one() -> None:
    twins = Twins(adapter())
    assert twins.open("ring", Config()).clause == "CACHE-3"
    assert twins.open("growing", Config(window=2)).result == "ok"


@pytest.mark.parametrize("kind", ["growing", "ring"])
@pytest.mark.parametrize("start", [0, 2, 4])
def test_pieces_of_a_snapshot_hold_what_the_whole_held(kind: str, start: int) -> None:
    config = Config(window=5 if kind == "ring" else None, step=2, batch=2)
    for at, piece in itertools.product(range(-1, 7), ("p", "c", "m")):
        twins = Twins(adapter())
        twins.open(kind, config)
        twins.append(5)
        twins.do({"op": "snapshot", "name": "s", "start": start})
        twins.do({"op": "split", "name": "s", "at": at, "parent": "p", "child": "c"})
        if piece == "m":
            twins.do({"op": "merge", "parent": "p", "child": "c", "name": "m"})
        twins.open(kind, config.changed(step=3), "B")
        twins.append(4, "B")
        for to in (5, 4, 3):
            twins.do({"op": "restore", "name": piece, "to": to, "cache": "B"})
        twins.append(1, "B")
        for name in "spcm":
            twins.do({"op": "close", "name": name})
            twins.do({"op": "close", "name": name})
