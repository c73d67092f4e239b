"""What all tests share: a device or a compiler that is not there is said, and is no failure."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it once; each core has a process of tests already

from kvspec.errors import CannotRun


@contextmanager
def _skipping() -> Iterator[None]:
    """Skip a test whose runtime says that it cannot run here, with its reason."""
    try:
        yield
    except CannotRun as e:
        if type(e) is not CannotRun:  # a compiler that is there, and does not take the kernels
            raise
        pytest.skip(str(e))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Of a test that is given its runtime."""
    with _skipping():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Of a test that makes its runtime itself."""
    with _skipping():
        yield


@pytest.fixture(autouse=True, scope="module")
def _searched_once() -> None:
    """Take what is there before the tests of a file out of the garbage collector's sight: tests that collect would
    search it each time. Collect before: what is out of sight is never freed."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)  # there is no such hook without xdist
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: some tests wait for a deadline, and leave theirs idle."""
    return (os.cpu_count() or 1) + 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say in one line how many tests were skipped, and why: each is for want of a package or a device."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        counted = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped, {reasons.total()} in all: {counted}")


def _reason(report: Any) -> str:
    """The first part of a skipped test's reason: what follows says how to get what is missing."""
    *_, reason = report.longrepr
    return str(reason).removeprefix("Skipped: ").partition(";")[0]
