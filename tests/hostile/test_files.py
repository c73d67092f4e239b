"""Files and folders that are not what a command expects: it says so in one line, and touches nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kvspec import trace as traces
from kvspec.notation import from_sentence
from support.running.command_line import kvconform

GOOD = traces.dumps(from_sentence("growing: append 2; view"))

Make = Callable[[Path], object]


def text(content: str) -> Make:
    return lambda path: path.write_text(content)


def data(content: bytes) -> Make:
    return lambda path: path.write_bytes(content)


def changed(**fields: object) -> Make:
    return lambda path: path.write_text(json.dumps(json.loads(GOOD) | fields))


def linked(to: str) -> Make:
    return lambda path: path.symlink_to(to)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 34)


FILES: dict[str, Make] = {
    "that is not there": lambda path: None,
    "that is empty": data(b""),
    "that is a folder": Path.mkdir,
    "that is a link to itself": linked("file"),
    "that is a link to nothing": linked("nothing"),
    "that never ends": linked("/dev/zero"),
    "that is a process's memory": linked("/proc/self/mem"),
    "of 16 GiB": sparse,
    "of null bytes": data(bytes(100)),
    "of an executable": data(b"\x7fELF" + bytes(range(256))),
    "compressed": data(b"\x1f\x8b\x08" + bytes(20)),
    "cut in half": text(GOOD[: len(GOOD) // 2]),
    "twice in one": text(GOOD + GOOD),
    "of one line of 10 MB": data(b"x" * 10_000_000),
    "of 100,000 brackets": data(b"[" * 100_000),
    "of a number": text("1"),
    "of null": text("null"),
    "of a text that is a trace": text(json.dumps(GOOD)),
    "of numbers beyond all numbers": text('{"kvtrace": 1e999}'),
    "of what is not a number": text('{"kvtrace": NaN}'),
    "of half a letter": text('{"kvtrace": "\\ud800"}'),
    "of XML": text("<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'aa'>]><x>&a;</x>"),
    "of a pickle": data(b"cos\nsystem\n(S'touch owned'\ntR."),
    "of YAML that runs code": text("!!python/object/apply:os.system ['touch owned']"),
}
"""What a file may be in the place of any other."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "a trace": ("replay", "FILE"),
    "a log": ("check", "FILE"),
    "a record": ("report", "FILE"),
    "known deviations": ("check", "LOG", "--known", "FILE"),
}
"""What reads files."""

SAMPLE = [
    *((file, "a trace") for file in FILES),
    *((file, "a log") for file in list(FILES)[::4]),
    *((file, "a record") for file in list(FILES)[1::4]),
    *((file, "known deviations") for file in list(FILES)[2::4] if file != "that is empty"),
]


@pytest.mark.must("status 2, one line")
@pytest.mark.parametrize(("file", "what"), SAMPLE, ids=[f"{what} {file}" for file, what in SAMPLE])
def test_for(file: str, what: str, tmp_path: Path) -> None:
    FILES[file](tmp_path / "file")
    words = [word.replace("FILE", "file").replace("LOG", "file") for word in COMMANDS[what]]
    done = kvconform(*words, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and not (tmp_path / "owned").exists()
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr and len(done.stderr) < 1000


TRACES: dict[str, Make] = {
    "of a version to come": changed(kvtrace=99),
    "of a kind that there is not": changed(kind="spiral"),
    "of a kind that is a path": changed(kind="../../etc/passwd"),
    "of no operations but a text": changed(ops="append 2"),
    "of 10,000,000 rows": changed(ops=[{"op": "append", "n": 10_000_000}]),
    "of a cache of a terabyte": changed(config={"kv_heads": 1 << 20, "k_dim": 1 << 20}),
    "of an operation that there is not": changed(ops=[{"op": "system", "n": 1}]),
    "with a field that there is not": changed(run="touch owned"),
    "of a million operations": changed(ops=[{"op": "view"}] * 1_000_000),
}


@pytest.mark.must("status 2, one line")
@pytest.mark.parametrize("make", TRACES.values(), ids=TRACES)
def test_a_trace(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "file")
    done = kvconform("replay", "file", cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and len(done.stderr) < 1000, done.stderr[
        :2000
    ]


ENCODINGS = ("utf-16", "utf-8-sig", "utf-32")


@pytest.mark.must("status 0: it can be read")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_trace_in(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOOD.encode(encoding))
    assert kvconform("replay", "file", cwd=tmp_path).returncode == 0


FOLDERS: dict[str, Make] = {
    "that is a file": text("mine"),
    "that is a link to a file": linked("/etc/passwd"),
    "that is a device": linked("/dev/null"),
    "below a file": lambda path: (path.write_text("mine"), path),
    "in /proc": linked("/proc/self"),
    "that is a link to itself": linked("file"),
}
"""What a report may be asked to stand in."""


@pytest.mark.must("status 2 or 3, one line")
@pytest.mark.parametrize(("name", "make"), FOLDERS.items(), ids=FOLDERS)
def test_a_report_in_a_folder(name: str, make: Make, tmp_path: Path) -> None:
    make(tmp_path / "file")
    where = "file/deeper" if name == "below a file" else "file"
    done = kvconform("run", "reference", "--clause", "GROW-1", "--quick", "--report", where, cwd=tmp_path)
    assert done.returncode in (2, 3) and "Traceback" not in done.stderr
    file = tmp_path / "file"
    assert file.is_symlink() or not file.is_file() or file.read_text() == "mine"


@pytest.mark.hostile
@pytest.mark.must("nothing is left")
def test_a_run_leaves_nothing_in_its_folder(tmp_path: Path) -> None:
    done = kvconform("run", "reference", "--clause", "RING-5", "--quick", cwd=tmp_path)
    assert done.returncode == 0 and os.listdir(tmp_path) == []


@pytest.mark.hostile
@pytest.mark.must("no path, no host")
def test_a_report_tells_nobody_where_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "my_engine.py").write_text(
        "from hostile.adapters import DiesAtOpen\n"
        "class Mine(DiesAtOpen):\n"
        "    more = {'version': '1', 'device': 'card of " + str(tmp_path / "secret") + "'}\n"
    )
    arguments = ("run", "my_engine:Mine", "--clause", "GROW-1", "--quick", "--report", "report")
    assert kvconform(*arguments, cwd=tmp_path).returncode == 1
    published = [f for f in (tmp_path / "report").rglob("*") if f.is_file() and f.name != "journal.jsonl"]
    assert {"record.json", "report.html", "report.md", "junit.xml"} <= {f.name for f in published}
    for said in (file.read_text() for file in published):
        assert str(tmp_path) not in said and not re.search(r"[\s\"](/usr|/home|/root)/", said)
    assert "hostile/adapters" not in (tmp_path / "report" / "record.json").read_text()
