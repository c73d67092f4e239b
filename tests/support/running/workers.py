"""Starts workers, asks them, and looks at which processes are left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvconform.worker.client import Worker, WorkerFailure
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.session.step import Inputs, Step
from support import fakes

CONFIG = Config()
NOTHING = {"op": "free"}


def alive(pid: int) -> bool:
    """Whether there is such a process, be it a zombie of ours."""
    return Path(f"/proc/{pid}").exists()


def running(pid: int) -> bool:
    """Whether it runs: an orphan that was killed is a zombie until init reaps it."""
    return (status(pid) or "Z")[0] != "Z"


def group_is_left(group: int) -> bool:
    members = [s for p in Path("/proc").iterdir() if p.name.isdigit() and (s := status(int(p.name)))]
    return any(s[2] == str(group) and s[0] != "Z" for s in members)


def status(pid: int) -> list[str] | None:
    """State, parent, group and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def worker(argv: list[str], **limits: Any) -> Worker:
    return Worker(argv, env=fakes.environment(), **{"deadline": 5.0, "start_deadline": 20.0, **limits})


def failure(w: Worker, head: dict[str, Any] = NOTHING, tensors: Mapping[str, Array] | None = None) -> WorkerFailure:
    with w, pytest.raises(WorkerFailure) as e:
        w.ask(head, tensors)
    assert type(e.value).verdict and str(e.value).startswith(e.value.message)
    return e.value


def append(session: RemoteSession, n: int = 2, config: Config = CONFIG) -> Step:
    rows = Pair(*(np.ones(config.shape(k, n), np.float16) for k in "kv"))
    return session.do({"op": "append", "n": n}, Inputs(rows))


def first_append(name: str, **limits: Any) -> Step:
    """The step of a first append to this fake adapter."""
    with worker(fakes.adapter(name), **limits) as w:
        session = RemoteSession(w, ["state", "history", "offset"])
        assert session.begin("growing", CONFIG).result == "ok"
        return append(session)
