"""Judge a whole engine in a test."""

from __future__ import annotations

from kvadapters.probe import Precision, Probe
from kvadapters.serving.driver import Driver
from kvconform.serving.run import Run


def judged(driver: Driver, probe: Probe, requests: int, rows: str | None = None) -> Run:
    """Ask this many requests of an engine that has loaded the probe, in f32. `rows` is their form in its cache."""
    run = Run(probe, driver, Precision("f32", rows))
    run.go(requests, 1)
    return run
