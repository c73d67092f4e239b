"""Masks on devices: minus infinity hides, whatever the other parts add up to."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from kvspec.geometry import Config
from kvspec.masks import Explicit
from support.device.devices import ADAPTERS

LARGE, HIDING = (np.array(row, np.float32)[None, None, None] for row in ([3e38, 0], [-np.inf, 0]))


@pytest.mark.parametrize("device", ADAPTERS)
@pytest.mark.parametrize(("kind", "window", "slots"), [("growing", None, [-np.inf, 0]), ("ring", 2, [0, -np.inf])])
def test_minus_infinity_wins_over_any_sum(device: str, kind: str, window: int | None, slots: list[float]) -> None:
    config = Config(window=window)
    cache = ADAPTERS[device]().open(kind, config)
    for n in (1, 1, 1) if window else (1, 1):
        cache.append(*(np.zeros(config.shape(of, n), np.float16) for of in "kv"))
    for parts in set(permutations((LARGE.tobytes(), LARGE.tobytes(), HIDING.tobytes()))):
        arrays = (Explicit(np.frombuffer(part, np.float32).reshape(1, 1, 1, 2)) for part in parts)
        mask = cache.mask(tuple(arrays))
        assert mask is not None and mask.ravel().tolist() == slots
