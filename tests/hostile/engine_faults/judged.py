"""Judges the example engine by requests, as `kvconform run --engine` does, while a fault is planted in it. What
makes a failure short is counted, not timed, so that a page made on a busy machine is the same."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from adapters.probe import engines
from hostile.engine_faults import Variant
from kvadapters.probe import Precision, Probe
from kvconform.serving.run import Run
from kvspec.serving.history import History
from support.engines import serving

REQUESTS = 500
LAYERS = "window 6,full,window 6"
"""A group of two layers and a group of one; a window reaches over two blocks of four rows."""


@cache
def written(adapters: bool = False, match: bool = False) -> tuple[Probe, Path]:
    """Write the probe that the engine loads, with or without adapters and match heads."""
    probe, folder = engines.small("qwen3", LAYERS, match=match), Path(tempfile.mkdtemp())
    probe = replace(probe, adapters=adapters)
    probe.write(folder)
    return probe, folder


class Sure(Run):
    """A run on an engine that works in this thread: what did not fail once does not fail the next time."""

    def _fails(self, history: History) -> bool:
        found = self._wrong_in(history)
        self.shortest = found or self.shortest
        return found is not None


class First(Run):
    """A run that ends with the first history in which something is wrong, and makes it no shorter."""

    def _failure(self, *found: object) -> None:
        raise KeyboardInterrupt


def judged(variant: Variant, requests: int = REQUESTS, seed: int = 0, kind: type[Run] = Sure) -> Run:
    """Ask the engine with a fault until one failure is found, or so many requests were asked."""
    settings = dict(variant.settings)
    probe, folder = written(settings.pop("adapters", False), settings.pop("match", False))
    rows = settings.setdefault("rows", "int8" if variant.id.startswith("rows/") else "f32")
    precision = Precision(rows="q8_0" if rows == "int8" else None)
    with variant.planted():
        run = kind(probe, serving.driver(folder, **settings), precision, seed, seconds=math.inf)
        run.go(requests, 1)
    return run
