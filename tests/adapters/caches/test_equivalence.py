"""The OpenCL adapter against the reference: the same operations on both, and every observation the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Causal, Explicit, Part, Window
from support import slow
from support.device import devices
from support.device.devices import adapter
from support.twins import Difference, Twins


class Walk:
    """A random walk over the operations on two or three caches of which some share their geometry."""

    def __init__(self, twins: Twins, seed: int, kind: str, config: Config) -> None:
        self.twins, self.pick = twins, random.Random(seed)
        twins.open(kind, config)
        twins.open(kind, config.changed(step=self.pick.choice((1, 2, 5))), "B")
        if self.pick.random() < 0.3:
            twins.open(*self._other(kind, config), "C")

    def _other(self, kind: str, config: Config) -> tuple[str, Config]:
        if config.window is None or self.pick.random() < 0.5:
            return kind, config.changed(k_dim=config.k_dim + 1)
        return ("growing", config) if self.pick.random() < 0.5 else (kind, config.changed(window=config.window + 1))

    def step(self) -> None:
        """One operation, of the legal ones or not, on the first cache most of the time."""
        name = self.pick.choice([*"AAA", *self.twins.configs])
        choices: list[tuple[Callable[[str], Any], int]] = [
            (self._append, 12), (self._mask, 6), (self._rewind, 5), (self._snapshot, 4), (self._restore, 5),
            (self._split, 2), (self._merge, 3), (self._close, 1), (self._plain, 3),
        ]  # fmt: skip
        todo = self.pick.choices([c for c, _ in choices], [w for _, w in choices])[0]
        todo(name)

    def _offset(self, name: str) -> int:
        return int(self.twins.sessions[0].caches[name].offset)

    def _append(self, name: str) -> None:
        if self.pick.random() < 0.08:
            wrong: dict[str, Any] = self.pick.choice(
                [{"kv_heads": 3}, {"k_dim": 9}, {"dtype": "f32"}, {"batch": 4}, {"values": 2}]
            )
            self.twins.append(self.pick.choice((0, 1, 3)), name, **wrong)
        else:
            self.twins.append(self.pick.choice((0, 1, 1, 1, 1, 2, 2, 3, 4, 7)), name)

    def _target(self, name: str) -> int:
        offset = self._offset(name)
        return self.pick.choice((offset - 1, offset - 2, offset, self.pick.randint(-1, offset + 1)))

    def _rewind(self, name: str) -> None:
        self.twins.do({"op": "rewind", "to": self._target(name), "cache": name})

    def _plain(self, name: str) -> None:
        op = self.pick.choice(("view", "view", "view", "scribble", "scribble", "free"))
        self.twins.do({"op": op, "cache": name})

    def _fresh(self) -> str:
        return self.pick.choice("stuvw")

    def _saved(self) -> str:
        return self.pick.choice([*self.twins.sessions[0].snapshots, "s"])

    def _snapshot(self, name: str) -> None:
        start = self.pick.choice((0, self.pick.randint(-2, self._offset(name) + 1)))
        self.twins.do({"op": "snapshot", "name": self._fresh(), "start": start, "cache": name})

    def _reach(self) -> tuple[str, int]:
        name = self._saved()
        saved = self.twins.sessions[0].snapshots.get(name)
        low, high = (0, 3) if saved is None else (saved.start, saved.stop)
        return name, self.pick.choice((high, high, high - 1, self.pick.randint(low - 1, high + 1)))

    def _restore(self, name: str) -> None:
        saved, to = self._reach()
        self.twins.do({"op": "restore", "name": saved, "to": to, "cache": name})

    def _split(self, name: str) -> None:
        saved, at = self._reach()
        op = {
            "op": "split",
            "name": saved,
            "at": at,
            "parent": self._fresh(),
            "child": self._fresh(),
            "cache": name,
        }
        self.twins.do(op)

    def _merge(self, name: str) -> None:
        op = {"op": "merge", "parent": self._saved(), "child": self._saved(), "name": self._fresh(), "cache": name}
        self.twins.do(op)

    def _close(self, name: str) -> None:
        self.twins.do({"op": "close", "name": self._saved(), "cache": name})

    def _mask(self, name: str) -> None:
        parts = (self._part(name) for _ in range(self.pick.choice((0, 1, 1, 2, 3))))
        self.twins.mask(*parts, name=name)

    def _part(self, name: str) -> Part:
        if self.pick.random() < 0.4:
            return self.pick.choice((Causal(), Window(self.pick.randint(1, 6))))
        model, config = self.twins.sessions[0].caches[name], self.twins.configs[name]
        shape = [self.pick.choice((1, config.batch)), self.pick.choice((1, 2)), model.queries or 0,
                 self.pick.choice((1, *[model.lengths().buffered] * 4))]  # fmt: skip
        if self.pick.random() < 0.1:
            shape[self.pick.choice((0, 2, 3))] += 1
        return Explicit(self._array(shape))

    def _array(self, shape: list[int]) -> Array:
        cells = self.twins.random
        if self.pick.random() < 0.5:
            return cells.integers(0, 2, shape).astype(bool)
        return cells.choice(np.array([-np.inf, -0.0, 0.0, 1.5, 1e6], np.float32), shape)


def configs(seed: int) -> tuple[str, Config]:
    pick = random.Random(seed)
    kind = pick.choice(("growing", "ring", "ring"))
    return kind, Config(
        batch=pick.choice((1, 1, 2)),
        kv_heads=pick.choice((1, 2, 3)),
        k_dim=pick.randint(1, 8),
        v_dim=pick.randint(1, 8),
        dtype=pick.choice(tuple(DTYPES)),
        step=pick.choice((1, 2, 3, 256)),
        window=pick.choice((1, 2, 3, 4, 5)) if kind == "ring" else None,
    )


@pytest.mark.parametrize("seed", slow.one_in(4, range(200)))
def test_a_random_walk_observes_the_same(seed: int) -> None:
    walk = Walk(Twins(adapter(), seed), seed, *configs(seed))
    for _ in range(random.Random(seed).choice((10, 40, 80))):
        walk.step()


@pytest.mark.parametrize("seed", slow.one_in(3, range(1000, 1030)))
def test_a_random_walk_observes_the_same_when_launched_as_on_a_gpu(seed: int) -> None:
    kind, config = configs(seed)
    walk = Walk(Twins(adapter(wide=True), seed), seed, kind, config.changed(k_dim=8 * config.k_dim))
    for _ in range(40):
        walk.step()


@pytest.mark.parametrize("seed", slow.one_in(3, range(2000, 2060)))
def test_a_random_walk_observes_the_same_on_the_cuda_text(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "ON", "cuda-cpu")
    walk = Walk(Twins(adapter(), seed), seed, *configs(seed))
    for _ in range(40):
        walk.step()


def test_a_difference_is_seen_in_every_observation() -> None:
    """The comparison itself: each lie about a step must be found."""
    twins = Twins(adapter())
    twins.open("growing", Config())
    told = twins.append(2)
    lies: list[dict[str, Any]] = [{"result": "refused"}, {"clause": "GROW-1"}, {"values": {}}, {"arrays": {}}]
    for what, array in told.arrays.items():
        assert array is not None
        minus = np.negative(array) if array.dtype != bool else ~array
        others = (None, minus, array[..., :-1], array.astype(np.float64))
        lies += [{"arrays": told.arrays | {what: other}} for other in others]
    for lie in lies:
        with pytest.raises(Difference):
            twins._compare("A", told, replace(told, **lie))
