"""What the tests of workers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kvconform.worker.client import Worker
from support.running.waiting import soon
from support.running.workers import alive, group_is_left


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The workers that were started; none may be left when the test ends, nor anyone of their group."""
    started: list[int] = []
    start = Worker._start

    def noted(worker: Worker) -> Any:
        child = start(worker)
        started.append(child.pid)
        return child

    monkeypatch.setattr(Worker, "_start", noted)
    yield started
    assert started
    assert [pid for pid in started if alive(pid)] == []
    assert soon(lambda: not any(group_is_left(pid) for pid in started))
