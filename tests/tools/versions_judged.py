"""Releases of engines, judged by the harness: each cache of each release by `kvconform run --quick`.

The adapters are those of the newest release. What is known of any release is known of all, so that a bug has one
name in each. A release that lacks a name which an adapter asks for cannot be opened.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kvadapters.find import ENGINES
from kvconform.commands.board import NOT_FILED, board
from kvconform.runner.record.redact import published
from kvconform.runner.verdict import outcomes
from kvreports import json_file
from kvreports.board.judged_releases import Found, Judged, JudgedCache
from kvreports.difference.compare import compare
from kvreports.difference.judged import of_run
from kvreports.run.bugs import bugs
from kvreports.run.standing import standing
from kvspec.errors import BadInput
from kvspec.reading import clauses
from kvspec.records.run import Record

ROOT = Path(__file__).parents[2]
FOLDERS = ("spec", "reference", "adapters", "conformance", "reports")
"""Where the packages of this checkout lie."""
SECONDS = 900
"""What a run may take."""
LIMITS = ("--deadline", "60", "--memory", "8192")
LACKS = re.compile(
    r"found error \((?:[a-z ]+: )?(?P<says>(?:ImportError|AttributeError): .+) \((?P<file>\w+\.py):\d+\)\)"
)
"""An adapter asks for a name that the engine does not have: the error is raised in the adapter's own file."""


def judged(names: Iterable[str], pythons: Mapping[str, Path], folder: Path) -> list[JudgedCache]:
    """Judge adapters by their names, in the environment of each release."""
    known = known_of_all(folder)
    for python in pythons.values():
        words = ["uv", "pip", "install", "-q", "-p", str(python), "-r", str(ROOT / "pyproject.toml")]
        subprocess.run(words, check=True)
    found = {name: {v: run(name, p, known) for v, p in pythons.items()} for name in names}
    return [cache(name, records, known) for name, records in found.items()]


def of_engine(prefix: str) -> list[str]:
    """The adapters whose names begin with a prefix."""
    return [name for name in ENGINES if name.startswith(prefix)]


def known_of_all(folder: Path) -> Path:
    """The file of known deviations, with those of one version said of all; the models lie beside it."""
    place = folder / "known"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "reports" / "deviations" / "models", place / "models", dirs_exist_ok=True)
    text = (ROOT / "reports" / "deviations" / "kvconform.toml").read_text(encoding="utf-8")
    file = place / "kvconform.toml"
    file.write_text(re.sub(r"^versions = .*\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    return file


def run(name: str, python: Path, known: Path) -> Record | str:
    """The record of a quick run, or why there is none. One that is there, by the same chapters, is taken."""
    report = python.parents[1] / "reports" / name
    if (found := _written(report)) is not None:
        return found
    words = [*(str(python), "-m", "kvconform", "run", name, "--quick", "--quiet", "--known", str(known))]
    paths = os.pathsep.join(str(ROOT / part) for part in FOLDERS)
    how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": SECONDS, "cwd": python.parent}
    environment = {**os.environ, "PYTHONPATH": paths}
    try:
        done = subprocess.run([*words, "--report", str(report), *LIMITS], env=environment, **how)
    except (subprocess.TimeoutExpired, OSError) as e:
        return f"more than {SECONDS} s" if isinstance(e, subprocess.TimeoutExpired) else str(e)
    lines = done.stderr.strip().splitlines() or ["nothing was printed"]
    return _written(report) or published(f"exit status {done.returncode}: {lines[-1]}")[:200]


def _written(report: Path) -> Record | None:
    """The whole record of a folder, if it is of today's chapters."""
    try:
        record = json_file.load(report / "record.json", Record)
    except BadInput:
        return None
    return record if record.spec.hash == clauses.digest() and not record.partial else None


def cache(name: str, found: Mapping[str, Record | str], known: Path) -> JudgedCache:
    """A cache in each release, each compared with the one before that was judged."""
    seen = {version: release(name, version, record, known) for version, record in found.items()}
    there = [v for v, one in seen.items() if one.answer == "judged"]
    for before, now in pairwise(there):
        old, new = found[before], found[now]
        if isinstance(old, Record) and isinstance(new, Record):
            same = _of_both(seen[before], seen[now]) | ({""} if _all_behind(old) and _all_behind(new) else set())
            changes = [
                c for c in compare(of_run(old), of_run(new), clauses.withdrawn()).changes if c.clause not in same
            ]
            seen[now].broke.extend(c.clause for c in changes if c.group == "broke anew")
            seen[now].mended.extend(c.clause for c in changes if c.group == "mended")
    print(f"{name}: {', '.join(f'{v} {one.answer} {len(one.bugs)}' for v, one in seen.items())}", flush=True)
    return JudgedCache(name=name, seen=list(seen.values()))


def _of_both(before: Judged, now: Judged) -> set[str]:
    """The clauses of known bugs that both releases have: a quick run blames one of them or another."""
    known = {bug.script for bug in before.bugs if bug.script} & {bug.script for bug in now.bugs if bug.script}
    return {clause for bug in (*before.bugs, *now.bugs) if bug.script in known for clause in bug.clauses}


def _all_behind(record: Record) -> bool:
    """Whether all that breaks no clause is what a known bug leads to."""
    return all(outcomes.BEHIND in failure.message for failure in record.unexplained if not failure.clauses)


def release(name: str, version: str, record: Record | str, known: Path) -> Judged:
    """What a record says of a release, or why there is none."""
    if isinstance(record, str):
        lacks = record.startswith("exit status 4")
        return Judged(version=version, answer="cannot open" if lacks else "not judged", told=record)
    if lacking := _lacks(name, record):
        return Judged(version=version, answer="cannot open", told=lacking)
    result = standing(record)
    told = f"{result.words} ({result.because})"
    return Judged(version=version, answer="judged", told=told, bugs=[*_filed(record, known), *_new(record)])


def _lacks(name: str, record: Record) -> str:
    """The name that an adapter asks for and a release does not have; empty where there is none."""
    own = f"{ENGINES[name].partition(':')[0].rpartition('.')[2]}.py"
    errors = (LACKS.search(failure.message) for failure in record.unexplained)
    return next((error["says"] for error in errors if error and error["file"] == own), "")


def _filed(record: Record, known: Path) -> Iterator[Found]:
    """The bugs that are known, as the board tells them."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "record.json"
        json_file.write(place, json_file.dumps(record))
        (engine,) = board([place], known, known.parent).engines
    for bug in (b for b in engine.bugs if b.first.sort != NOT_FILED.sort):
        script = bug.name.partition(" ")[0]
        file = script if (ROOT / "reports" / "deviations" / f"{script}.py").is_file() else ""
        yield Found(says=bug.first.reason, sort=bug.first.sort, script=file, clauses=bug.clauses)


def _new(record: Record) -> Iterator[Found]:
    """The bugs that nobody has filed: each with its shortest trace. What a known bug leads to is that bug, such as
    a process that dies of rows read out of bounds."""
    for bug in (b for b in bugs(record) if b.verdict not in ("XFAIL", "XPASS") and outcomes.BEHIND not in b.reason):
        words = f"{bug.failures[0].words}: {bug.reason}" if bug.failures else bug.reason
        yield Found(says=f"{bug.title}. {words}"[:400], sort=NOT_FILED.sort, script="", clauses=list(bug.clauses))
