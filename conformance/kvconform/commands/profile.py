"""`kvconform profile`: how fast an adapter is, beside its peers and the limits of its device. It judges nothing."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kvadapters import find
from kvconform import SUITE_VERSION, output
from kvconform.profiling import cases, peers
from kvconform.profiling.case import Case
from kvconform.profiling.measure import Pace
from kvconform.profiling.session import Session
from kvconform.runrecord import machine, suite_digest
from kvreports import profilefile, profiletext
from kvspec import SPEC_VERSION, clauses
from kvspec.contract import description
from kvspec.profile_record import VERSION, Profile

QUICK = Pace(3, 0.002, 1.0)
"""A quick profile shows that everything works; its numbers say little."""

INTERRUPTED = 130
NOTHING_MEASURED = 3


def main(options: Namespace) -> int:
    """Measure, print the table, leave the record and the page; never 1, for nothing is judged."""
    todo, found = cases.selected(options.quick, options.cases), peers.find(_names(options.peers))
    adapter = find.load(options.adapter)
    said = description(find.guarded(options.adapter, "cannot be asked what it is", adapter.describe))
    for peer in found.records:
        if peer["missing"]:
            _say(f"peer {peer['name']} takes no part: {peer['missing']}")
    pace = QUICK if options.quick else Pace(rounds=options.rounds)
    session = Session(adapter, said, found, options.memory << 20, pace, _say)
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    reason = _run(session, todo)
    seconds = round(time.perf_counter() - began, 1)
    whole = record(session, options, {"started": started, "seconds": seconds, "reason": reason})
    _leave(whole, options)
    if reason:
        return INTERRUPTED
    return 0 if session.measured else NOTHING_MEASURED


def _names(given: str | None) -> Sequence[str]:
    return [name for name in (given or "").split(",") if name]


def _say(text: str) -> None:
    sys.stderr.write(f"kvconform: {text}\n")
    sys.stderr.flush()


def _run(session: Session, todo: Sequence[Case]) -> str:
    """Why it ended early; empty where it did not."""
    try:
        session.run(todo)
    except KeyboardInterrupt:
        return f"interrupted after {len(session.measured)} of {len(todo)} cases"
    return ""


def record(session: Session, options: Namespace, about: dict[str, Any]) -> Profile:
    """The record of what was measured so far."""
    pace = session.pace
    return {
        "kvprofile": VERSION,
        "spec": {"version": SPEC_VERSION, "hash": clauses.digest()},
        "suite": {"version": SUITE_VERSION, "hash": suite_digest()},
        "started": about["started"],
        "seconds": about["seconds"],
        "partial": bool(about["reason"]),
        "partial_reason": about["reason"],
        "machine": machine(),
        "command": [options.adapter],
        "adapter": session.said.to_json(),
        "clock": session.clock,
        "streams": session.streams.words if session.streams is not None else "",
        "settings": {
            "rounds": pace.rounds,
            "turn_seconds": pace.turn,
            "case_seconds": pace.case,
            "memory_bytes": session.memory,
            "quick": options.quick,
            "cases": options.cases,
        },
        "limits": session.limits(),
        "peers": session.peers.records,
        "measurements": session.measured,
        "skipped": session.skipped,
    }


def _leave(whole: Profile, options: Namespace) -> None:
    if options.report:
        page = profilefile.leave(whole, Path(options.report), output.leave)
        _say(f"profile at {page}")
    sys.stdout.write(profiletext.shown(whole, options.format))
    sys.stdout.flush()
