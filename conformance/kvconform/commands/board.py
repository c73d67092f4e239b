"""`kvconform board RECORD...`: the records of released engines as one board, with their known deviations."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kvadapters.find import BUILT_IN
from kvconform.message import tell
from kvconform.runner.record import output
from kvconform.runner.verdict import known
from kvconform.runner.verdict.known import KnownDeviation, KnownOfServer
from kvreports import json_file
from kvreports.board import html, markdown, over_time, versions
from kvreports.board.asked import Asked
from kvreports.board.badge import badge
from kvreports.board.engines import SORTS, Board, Deviation, Engine, Unjudged
from kvreports.board.served import Served, ServedBug
from kvreports.board.versions import Compared, Versions
from kvreports.run.bugs import bugs
from kvreports.safe_text import cleaned, cleaned_record
from kvspec.errors import BadInput
from kvspec.own_folder import demand_own
from kvspec.records.asked import AskedRecord
from kvspec.records.run import Failure, Record
from kvspec.records.serving import ServingFailure, ServingRecord

NAMES = ("README.md", "board.html")
"""The files that are written."""
OVER_TIME = "VERSIONS.md"
"""The file that is written where releases were compared."""

NOT_FILED = KnownDeviation(clause=(), reason="not filed yet", sort="not filed")


def main(options: Namespace) -> int:
    """Write the board and its page into a folder and return 0. Raises BadInput for a file that cannot be read."""
    folder = Path(options.out)
    demand_own(folder, (*NAMES, OVER_TIME), NAMES[0], markdown.TITLE)
    found = replace(board([Path(p) for p in options.records], options.known, folder), spec=options.spec)
    for name, text in zip(NAMES, (markdown.render(found), html.render(found)), strict=True):
        output.leave(folder / name, text)
    if found.compared:
        output.leave(folder / OVER_TIME, over_time.render(found.compared, found.spec))
    for anchor, engine in zip(found.anchors, found.engines, strict=True) if options.badges else ():
        output.leave(Path(options.badges) / f"{anchor}.svg", badge(engine))
    tell(f"board at {folder / NAMES[1]}")
    return 0


def board(records: list[Path], file: Path | None, folder: Path) -> Board:
    """The board of these records, its addresses relative to a folder. Raises BadInput."""
    entries = known.read(file)
    beside = (file or known.FILE).parent
    whole = [path for path in records if json_file.begins(path, ServingRecord)]
    several = [path for path in records if json_file.begins(path, Versions)]
    by_probes = [path for path in records if json_file.begins(path, AskedRecord)]
    of_caches = [path for path in records if path not in (*whole, *several, *by_probes)]
    engines = [_engine(path, entries, beside, folder) for path in of_caches]
    served = [_served(path, known.served(file), beside, folder) for path in whole]
    unjudged = [Unjudged(u.engine, u.reason) for u in known.unjudged(file)]
    engines.sort(key=lambda e: (e.name, e.record.started))
    compared = sorted((_compared(p, entries, beside, folder) for p in several), key=lambda c: c.record.engine)
    by_bugs = sorted(served, key=lambda s: (-len(s.bugs), s.form))
    asked = [_asked(path, folder) for path in by_probes]
    return Board(engines, unjudged, by_bugs, compared, asked, unmet=known.unmet(file))


def _engine(path: Path, entries: tuple[KnownDeviation, ...], beside: Path, folder: Path) -> Engine:
    record = cleaned_record(json_file.load(path, Record))
    own = [k for k in entries if k.names(record.adapter.get("name", ""))]
    deviations = [d for f in record.failures for d in _deviations(f, record, own, beside, folder)]
    gravest_first = sorted(deviations, key=lambda d: d.gravity)
    return Engine(record, _address(path, folder), gravest_first, record.adapter.get("name") in BUILT_IN)


def _deviations(
    failure: Failure, record: Record, entries: list[KnownDeviation], beside: Path, folder: Path
) -> list[Deviation]:
    """The failure as each bug that it shows."""
    found = _explaining(failure, entries)
    unfiled = Deviation(failure, NOT_FILED.sort, NOT_FILED.reason, bug=_unfiled(failure, record))
    return [_deviation(failure, entry, beside, folder) for entry in found] if found else [unfiled]


def _explaining(failure: Failure, entries: list[KnownDeviation]) -> list[KnownDeviation]:
    """The entry that explains a failure; several where it needs all of them, and its record joins their reasons."""
    one = next((k for k in entries if k.because in failure.known.values() or k.is_outcome(failure)), None)
    joined = [f"; {why}; " for why in failure.known.values()]
    return [one] if one else [k for k in entries if any(f"; {k.because}; " in whys for whys in joined)]


def _unfiled(failure: Failure, record: Record) -> str:
    """The bug that the run took a failure for."""
    return next((f"{bug.title} {bug.chapter}" for bug in bugs(record) if failure in bug.failures), "")


def _deviation(failure: Failure, entry: KnownDeviation, beside: Path, folder: Path) -> Deviation:
    bug = entry.script or " ".join(entry.models) or entry.reason
    return Deviation(failure, entry.sort, entry.reason, entry.link, *_links(entry.script, beside, folder), bug)


def _served(path: Path, entries: tuple[KnownOfServer, ...], beside: Path, folder: Path) -> Served:
    """A whole engine in one form; the folder of its record names both."""
    record, form = cleaned(json_file.load(path, ServingRecord)), path.parent.name
    by = dict[KnownOfServer | None, list[ServingFailure]]()
    for failure in record.failures:
        entry = next((k for k in entries if k.explains(record.engine.name, failure, form)), None)
        by.setdefault(entry, []).append(failure)
    bugs = [_bug(entry, tuple(failures), beside, folder) for entry, failures in by.items()]
    return Served(record, form, _address(path, folder), tuple(bugs))


def _asked(path: Path, folder: Path) -> Asked:
    """An engine that was asked by a probe."""
    return Asked(cleaned(json_file.load(path, AskedRecord)), _address(path, folder))


def _bug(
    entry: KnownOfServer | None, failures: tuple[ServingFailure, ...], beside: Path, folder: Path
) -> ServedBug:
    if entry is None:
        return ServedBug(NOT_FILED.sort, NOT_FILED.reason, failures)
    return ServedBug(entry.sort, entry.reason, failures, entry.link, *_links(entry.script, beside, folder))


def _compared(path: Path, entries: Iterable[KnownDeviation], beside: Path, folder: Path) -> Compared:
    """Several releases of an engine. Raises BadInput where a bug or a cache is not told of each."""
    record = cleaned(json_file.load(path, Versions))
    if hole := versions.hole(record):
        raise BadInput(f"{path}: {hole}; `nox -s versions` writes it")
    clauses = dict[str, tuple[str, ...]]()
    for entry in entries:
        clauses[entry.script] = tuple(dict.fromkeys((*clauses.get(entry.script, ()), *entry.clauses)))
    links = {bug.script: _links(bug.script, beside, folder) for bug in record.bugs}
    return versions.compared(record, clauses, SORTS, links, _address(path, folder))


def _links(script: str, beside: Path, folder: Path) -> tuple[str, str]:
    """The addresses of a script and of the draft of a report, which lies beside it."""
    return _there(beside / f"{script}.py", folder), _there(beside / f"{script}.md", folder)


def _there(path: Path, folder: Path) -> str:
    return _address(path, folder) if path.is_file() else ""


def _address(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()
