"""From nothing to a verdict: a probe is written, the serving engine of the examples is started, and kvconform is
pointed at it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import jsonschema
import pytest

from hostile.engine_faults import FAULTS
from kvadapters.serving.http import starting
from kvconform import cli
from kvconform.commands import serving as serving_command
from kvreports import json_file
from kvspec.records.serving import ServingRecord
from support import fakes
from support.engines import serving
from tools import schemas
from tools.floors import ROOT

PROBE, SERVER, RUN = (
    shlex.split(line.removesuffix(" &"))
    for line in re.findall(
        r"^ {4}(.*(?:-o probe|serving_engine probe|--model probe).*)$", (ROOT / "README.md").read_text(), re.M
    )
)
"""The three lines of the README."""

RIGHT, SMALL = f"{serving.__name__}:sized", f"{serving.__name__}:small"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("served") / "probe"
    assert cli.main([*PROBE[1:-1], str(into)]) == 0
    return into


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    at = SERVER.index("probe")
    assert SERVER[:at] == ["PYTHONPATH=docs/examples", "python3", "-m", "serving_engine"]
    command = [sys.executable, "-m", "serving_engine", str(folder), *SERVER[at + 1 :], "--port", "0"]
    with subprocess.Popen(command, env=fakes.environment(), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield server.stdout.readline().strip()
        server.terminate()


def test_a_server_is_judged(address: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said_of = {"http://127.0.0.1:8000/v1": address, "probe": str(folder)}
    words = [said_of.get(word, word) for word in RUN[1:]]
    assert {address, str(folder)} < set(words)
    words = [f"{word},version=7" if word.startswith("block=") else word for word in words]
    status = cli.main([*words, "--requests", "66", "--report", str(tmp_path)])
    said = capsys.readouterr()
    assert re.search(r"first verdict: nothing is wrong; 16 clauses tried once, \d\d requests", said.err), said.err
    assert status in (0, 3) and "0 histories" in said.out, said.out  # so few requests do not exercise everything
    record = json_file.load(tmp_path / "record.json", ServingRecord)
    verdicts = {clause.id: clause.verdict for clause in record.clauses}
    assert all(verdicts[f"SERVE-{n}"] == "PASS" for n in (1, 2, 3, 4, 5, 8, 12, 13, 14)), verdicts
    assert record.asked["requests"] >= 60 and record.counted["cached tokens"] > 50
    assert record.engine.name == "serving_engine" and record.engine.version == "7"
    assert record.engine.tells == "all" and "samples" in record.engine.can
    jsonschema.validate(json.loads((tmp_path / "record.json").read_text()), schemas.SCHEMAS["serving"]())
    assert "SERVE-13" in (tmp_path / "report.md").read_text()
    assert "answer depends on its own tokens alone" in (tmp_path / "report.html").read_text()
    assert cli.main(["report", str(tmp_path / "record.json"), "--format", "markdown"]) == 0


@pytest.mark.parametrize("given", ["import serving_engine", "from kvconform import cli; cli.main(RUN)"])
def test_a_judge_and_the_engine_beside_it_compute_in_one_thread(given: str, tmp_path: Path) -> None:
    """Threads of numpy wait for each other: on a busy machine they cost more than they give."""
    code = f"""
RUN = ["run", "--engine", "kvconform:main", "--model", {str(tmp_path)!r}]
{given}
import numpy, psutil
assert psutil.Process().num_threads() == 1, psutil.Process().num_threads()
"""
    environment = fakes.environment()
    environment.pop("OPENBLAS_NUM_THREADS", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_wrong_engine_is_found_and_drawn(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ["--engine", SMALL, "--model", str(folder), "--requests", "40", "-x"]
    with FAULTS["prefix/no-parent"].planted():
        assert cli.main(["run", *engine, "--report", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "SERVE-3: ask a " in said.out and "Does not conform" in said.out
    assert "  ^ query" in (tmp_path / "report.md").read_text()
    assert "SERVE-3" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--server", "http://127.0.0.1:9/v1", "--model", "FOLDER"], 4, "is it up?"),
        (["--server", "nowhere", "--model", "FOLDER"], 2, "no address of a server"),
        (["--server", "http://127.0.0.1:9/v1"], 2, "--model DIR"),
        (["--server", "http://127.0.0.1:9/v1", "--model", "/nowhere"], 2, "probe"),
        (["--engine", "lavalamp", "--model", "FOLDER"], 2, "unknown engine"),
        (["--engine", "os:getcwd", "--model", "FOLDER"], 2, "cannot load"),
        (["--engine", RIGHT, "--model", "FOLDER", "--declare", "x=1"], 2, "declares nothing"),
        (
            ["--engine", RIGHT, "--model", "FOLDER", "--rows", "q8_0"],
            2,
            "be started with rows",
        ),
        (
            ["--engine", RIGHT, "--model", "FOLDER", "--declare", "longest=9"],
            2,
            "with longest",
        ),
        (["--engine", SMALL, "--model", "FOLDER", "--declare", "block=8"], 2, "has block=4"),
        (["reference", "--engine", RIGHT], 2, "name one adapter"),
        (["--engine", RIGHT, "--model", "FOLDER", "--quick"], 2, "is judged without --quick"),
        (["--engine", "x:y", "--model", "FOLDER", "--processes", "2"], 2, "is judged without --processes"),
        (["reference", "--requests", "7"], 2, "no use for --requests"),
    ],
)
def test_what_is_wrong_with_a_command_is_said(
    words: list[str],
    status: int,
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving_command, "PATIENCE", 0.5)
    assert cli.main(["run", *(str(folder) if word == "FOLDER" else word for word in words)]) == status
    assert said in capsys.readouterr().err


class Loading(BaseHTTPRequestHandler):
    """A server that loads its model at the first request."""

    statuses: ClassVar[list[int]] = [503, 200]

    def do_GET(self) -> None:
        self.send_response(self.statuses.pop(0))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_it_is_told_why_a_server_cannot_be_asked_yet() -> None:
    with HTTPServer(("127.0.0.1", 0), Loading) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        Thread(target=server.serve_forever).start()
        assert [starting(address), starting(address)] == ["it answers with status 503", ""]
        server.shutdown()
    assert starting(address) == "nobody listens there yet"


def test_a_server_that_was_started_just_now_is_waited_for(
    address: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three lines of the README can be pasted together."""
    whys = iter(["nobody listens there yet", "it answers with status 503", ""])
    monkeypatch.setattr(serving_command, "starting", lambda _: next(whys))
    assert cli.main(["run", "--server", address, "--model", str(folder), "--requests", "3"]) in (0, 3)
    told = [line for line in capsys.readouterr().err.splitlines() if "waiting for" in line]
    assert told == [f"kvconform: waiting for {address} (nobody listens there yet), at most 60 s"]
    assert next(whys, "all were asked") == "all were asked"
