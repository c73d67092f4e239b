"""`kvconform profile`: measures how fast an adapter is, beside its peers and device limits. It judges nothing."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from msgspec import to_builtins

from kvadapters import find
from kvconform.message import tell
from kvconform.runner.journal import Journal
from kvconform.runner.progress import tell_device
from kvconform.runner.record import output
from kvconform.runner.record.provenance import machine, suite_digest
from kvconform.version import SUITE_VERSION
from kvprofile import cases, peers
from kvprofile.budget import Budget, budget
from kvprofile.case import Case
from kvprofile.measure import Pace
from kvprofile.profile_run import Session
from kvspec import SPEC_VERSION
from kvspec.contract import Description, description
from kvspec.reading import clauses
from kvspec.records.document import Version
from kvspec.records.profile import Measurement, Profile, SkippedCase

QUICK = 3, 0.002, 1.0
"""The `Pace` of a quick profile: it shows that everything works; its numbers say little."""

QUICK_MEMORY = 8 << 20
"""Most bytes of rows to rotate through in a quick profile."""

CUT = "the profile was cut short: this was made from its journal"

INTERRUPTED = 130
NOTHING_MEASURED = 3


def main(options: Namespace) -> int:
    """Measure, print the table, write the record and the page. The status is never 1, because nothing is judged."""
    choice: cases.Choice = "quick" if options.quick else "models" if options.models else "table"
    todo, adapter = cases.selected(choice, options.cases), find.load(options.adapter)
    session = _session(options, adapter)
    journal = Journal(Path(options.report) if options.report else None)
    session.keep = partial(_note, journal, session)
    about: dict[str, Any] = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "before": _state(adapter)}
    about |= {"reason": CUT, "after": {}, "seconds": 0.0}
    journal.write("profile", record=to_builtins(record(session, options, about)))
    began = time.perf_counter()
    about["reason"] = _run(session, todo)
    about["after"] = {f"{name} after": text for name, text in _state(adapter).items()}
    about["seconds"] = round(time.perf_counter() - began, 1)
    journal.close()
    whole = record(session, options, about)
    write = partial(output.write, whole, Path(options.report)) if options.report else None
    unwritten = output.deliver([whole], options.format, write)
    if about["reason"]:
        return INTERRUPTED
    return unwritten or (0 if session.measured else NOTHING_MEASURED)


def _session(options: Namespace, adapter: Any) -> Session:
    """The adapter beside its peers; tell who takes no part, and how much memory each may take."""
    found = peers.find(_names(options.peers), bool(getattr(adapter, "gpu", False)))
    said = description(find.guarded(options.adapter, "cannot describe itself", adapter.describe))
    tell_device(said, "faster")
    for peer in found.records:
        if peer.missing:
            tell(f"peer {peer.name} takes no part: {peer.missing}")
    pace = Pace(*QUICK) if options.quick else Pace(rounds=options.rounds, whole=options.minutes * 60)
    room = _budget(options, adapter, said, len(found.peers))
    tell(f"memory: each of {len(found.peers) + 1} parties holds at most {room.share >> 20} MiB")
    return Session(adapter, said, found, room, pace, tell)


def _names(given: str | None) -> Sequence[str]:
    return [name for name in (given or "").split(",") if name]


def _budget(options: Namespace, adapter: Any, said: Description, peers_: int) -> Budget:
    """Give the memory of each party: a GPU's own where the description says how much it has, else the host's."""
    device, cache = said.details.get("memory"), int(getattr(adapter, "cache_bytes", 0))
    asked = options.memory and options.memory << 20
    made = budget(asked, cache, peers_, device if isinstance(device, int) else None)
    return made._replace(rotation=min(made.rotation, QUICK_MEMORY)) if options.quick else made


def _note(journal: Journal, session: Session, case: Measurement | SkippedCase) -> None:
    """Keep a case, so that a profile that is killed loses no case that it has measured."""
    event = "measured" if isinstance(case, Measurement) else "left out"
    so_far = {"limits": to_builtins(session.limits()), "clock": session.clock, "streams": _streams(session)}
    journal.write(event, case=to_builtins(case), so_far=so_far)


def _streams(session: Session) -> str:
    return "" if session.streams is None else session.streams.words


def _state(adapter: Any) -> dict[str, str]:
    """Give the machine's load, since other work makes the numbers less reliable, its clock rate if known, and what
    the adapter says of its device."""
    clock = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    load = f"{os.getloadavg()[0]:.2f} over the last minute, on {os.cpu_count()} cores"
    own = {"clock": f"{clock.current:.0f} MHz"} if clock else {}
    return {"load": load, **own, **getattr(adapter, "state", dict)()}


def _run(session: Session, todo: Sequence[Case]) -> str:
    """Run; give why it ended early, or an empty text."""
    try:
        session.run(todo)
    except KeyboardInterrupt:
        return f"interrupted after {len(session.measured)} of {len(todo)} cases"
    return ""


def record(session: Session, options: Namespace, about: dict[str, Any]) -> Profile:
    """Build the record of the measurements so far."""
    pace = session.pace
    return Profile(
        spec=Version(version=SPEC_VERSION, hash=clauses.digest()),
        suite=Version(version=SUITE_VERSION, hash=suite_digest()),
        started=about["started"],
        seconds=about["seconds"],
        partial=bool(about["reason"]),
        partial_reason=about["reason"],
        machine={**machine(), **about["before"], **about["after"]},
        command=[options.adapter],
        adapter=session.said.to_json(),
        clock=session.clock,
        streams=_streams(session),
        settings={
            "rounds": pace.rounds,
            "turn_seconds": pace.turn,
            "case_seconds": pace.case,
            "whole_seconds": pace.whole,
            "memory_bytes": session.budget.rotation,
            "share_bytes": session.budget.share,
            "cache_bytes": session.cache_bytes,
            "quick": options.quick,
            "cases": options.cases,
        },
        limits=session.limits(),
        peers=session.peers.records,
        measurements=session.measured,
        skipped=session.skipped,
    )
