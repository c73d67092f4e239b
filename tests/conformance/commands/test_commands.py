"""The command line: each command does its work, or says what was wrong, and ends with its own status."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import sys
from argparse import Namespace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvconform import cli
from kvconform.commands import next_command, run
from kvconform.runner import journal
from kvspec import notation, trace
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import index
from support.running import command_line, judging
from support.running.command_line import kvconform
from support.samples.record_samples import passing
from support.slow import one_in

SHORT = ("--chapter", "growing", "--clause", "GROW-1", "--quick")


def write(folder: Path, name: str, content: str) -> Path:
    file = folder / name
    file.write_text(content)
    return file


def test_an_adapter_that_needs_a_device_which_is_not_there_ends_with_4() -> None:
    done = kvconform("run", "support.fakes.lies:NeedsADevice")
    assert (done.returncode, done.stdout) == (4, "")
    assert (
        "support.fakes.lies:NeedsADevice cannot run here: there is no such device here; install one" in done.stderr
    )


def test_without_an_opencl_device_the_opencl_adapter_ends_with_4_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nowhere")
    done = kvconform("run", "opencl", *SHORT)
    assert (done.returncode, done.stdout) == (4, "")
    assert "opencl cannot run here: " in done.stderr and "pip install 'kvconform[opencl]'" in done.stderr


def test_a_run_that_exercises_nothing_ends_with_3() -> None:
    status, seen, _ = command_line.run("support.fakes.adapters:Fake", "--chapter", "ring")
    assert (status, set(seen.summary)) == (3, {"NOT_CLAIMED"})


def test_a_run_says_at_once_what_it_does_and_prints_json_alone(tmp_path: Path) -> None:
    """A process adapter that prints, with every report."""
    folder = tmp_path / "deep" / "report"
    engine = [sys.executable, "-m", "kvadapters.serve", "support.fakes.endings:PrintsALot"]
    done = kvconform("run", *SHORT, "--format", "json", "--report", folder, "--", *engine)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert done.stderr.startswith(f"kvconform: judging {sys.executable}\n")
    assert seen == json.loads((folder / "record.json").read_text())
    schema = json.loads(resources.files("kvspec").joinpath("schemas", "record.json").read_text())
    jsonschema.validate(seen, schema)
    assert (
        {c["id"]: c["verdict"] for c in seen["clauses"]} == {"GROW-1": "PASS"}
        and seen["problems"] == []
        and seen["command"][-1] == "support.fakes.endings:PrintsALot"
    )
    left = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert {
        "record.json",
        "report.html",
        "report.md",
        "journal.jsonl",
        "junit.xml",
        "record.sarif",
        "badge.svg",
    } == left
    for form in ("table", "json", "markdown"):
        again = kvconform("report", folder / "record.json", "--format", form)
        assert again.returncode == 0 and "PASS" in again.stdout and again.stderr == ""


def test_the_first_line_comes_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    for heavy in ("numpy", "hypothesis", "pytest"):
        write(tmp_path, f"{heavy}.py", "raise RuntimeError('too early')")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from kvconform.cli import main; main(['run', 'reference'])"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=judging.fakes.environment(), text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "kvconform: judging reference\n"
        assert "too early" in running.stderr.read()


@pytest.mark.parametrize("place", ["a file in the way", "a file above"])
def test_a_report_that_cannot_be_written_is_said_before_the_run(place: str, tmp_path: Path) -> None:
    file = write(tmp_path, "report", "mine")
    folder = file if place == "a file in the way" else file / "below"
    done = kvconform("run", "reference", *SHORT, "--report", folder)
    assert done.returncode == 2 and "cannot be written" in done.stderr and str(folder) in done.stderr
    assert file.read_text() == "mine" and list(tmp_path.iterdir()) == [file]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run on an adapter that is broken in one thing, with its report."""
    folder = tmp_path_factory.mktemp("failed")
    arguments = ("--clause", "CACHE-7", "--traces", "2", "--report", folder)
    return folder, kvconform("run", "support.fakes.adapters:AcceptsAnyRewind", *arguments)


def test_a_broken_clause_ends_with_1_and_names_it(failed: Any) -> None:
    folder, done = failed
    assert done.returncode == 1 and "CACHE-7" in done.stdout and "expected refused CACHE-7, found ok" in done.stdout
    assert f"report at {folder}/report.html" in done.stderr
    assert done.stderr.endswith("kvconform: next: kvconform explain CACHE-7\n")
    assert "01-CACHE-7.json" in {p.name for p in (folder / "failures").iterdir()}


def test_a_failing_trace_is_replayed_and_drawn(failed: Any) -> None:
    file = sorted((failed[0] / "failures").iterdir())[0]
    plain = kvconform("replay", file, "--adapter", "support.fakes.adapters:AcceptsAnyRewind")
    assert plain.returncode == 1 and "FAIL: CACHE-7: expected refused CACHE-7, found ok" in plain.stdout
    svg = failed[0] / "drawn.svg"
    drawn = kvconform(
        "replay", file, "--adapter", "support.fakes.adapters:AcceptsAnyRewind", "--draw", "--svg", svg
    )
    assert "expected" in drawn.stdout and "found" in drawn.stdout and svg.read_text().startswith("<svg")
    right = kvconform("replay", file, "--adapter", "support.fakes.adapters:Fake")
    assert right.returncode == 0 and "FAIL" not in right.stdout


def test_a_report_prints_the_command_that_replays_its_first_failure(failed: Any) -> None:
    (words,) = re.findall(r"^kvconform (replay .*)$", failed[1].stdout, re.M)
    assert words.startswith("replay 'growing kv_heads=1: rewind 1' --draw --adapter ")
    again = kvconform(*shlex.split(words))
    assert again.returncode == 1 and "FAIL: CACHE-7: expected refused CACHE-7, found ok" in again.stdout
    assert words in html.unescape((failed[0] / "report.html").read_text())


@pytest.mark.parametrize("words", ["ring window=4: apend 5", "rung: append 5", "ring window=x: view"])
def test_words_that_say_no_trace_end_with_2(words: str) -> None:
    done = kvconform("replay", words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr


USUAL_TRACES = {(): 24, ("--clause", "GROW-1"): 12, ("--quick",): 2, ("--clause", "GROW-1", "--traces", "60"): 60}


@pytest.mark.parametrize(("given", "traces"), USUAL_TRACES.items())
def test_a_run_on_a_clause_draws_fewer_traces_and_a_quick_one_fewest(given: tuple[str, ...], traces: int) -> None:
    read = cli.parser().parse_args(["run", "reference", *given])
    read.process = ()
    assert run.settings_of(read).traces == traces


def test_a_quick_run_says_what_it_left_out(tmp_path: Path) -> None:
    options = ("--quick", "--chapter", "growing", "--processes", "1", "--report", tmp_path)
    done = kvconform("run", "reference", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    left_out = "(about 5 were judged), most of each exploration (2 were judged), large traces"
    assert f"QUICK RUN, which left out: most traces of each chapter's covers {left_out}" in " ".join(
        done.stdout.split()
    )
    assert left_out in json.loads((tmp_path / "record.json").read_text())["selection"]["left out"]
    for page in ("report.html", "report.md"):
        assert "Quick run: reference" in (tmp_path / page).read_text()


def test_a_quiet_run_is_one_line() -> None:
    done = kvconform("run", "reference", *SHORT, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    score = f"1 of 1 clause it claims, 1 of {len(CHAPTERS)} chapters, a run of a part"
    assert done.stdout == f"reference: Conforms ({score})\n"


def test_json_is_a_format() -> None:
    assert json.loads(kvconform("run", "reference", *SHORT, "--json").stdout)["exit_status"] == 0


def test_a_run_stops_when_enough_has_failed_and_goes_on_with_what_failed(tmp_path: Path) -> None:
    options = (
        "support.fakes.adapters:AcceptsAnyRewind",
        "--chapter",
        "growing",
        "--quick",
        "--report",
        tmp_path,
    )
    whole = json.loads(kvconform("run", *options, "--processes", "1", "--json").stdout)
    failed = journal.failed(tmp_path)
    assert len(failed) > 2 and not whole["partial"]
    done = kvconform("run", *options, "--maxfail", "2", "--processes", "1")
    assert done.returncode == 1 and "PARTIAL RUN: stopped after 2 failed" in done.stdout
    assert journal.failed(tmp_path) == failed[:2]
    again = kvconform("run", *options, "--last-failed")
    assert again.returncode == 1 and "but the checks that failed in the run before (2)" in " ".join(
        again.stdout.split()
    )
    judged = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [e["test"] for e in judged if e["event"] == "judged" and e["test"] not in ("diagnosis", "claim")] == [
        *failed[:2]
    ]


def test_where_nothing_failed_before_all_is_judged(tmp_path: Path) -> None:
    kvconform("run", "reference", *SHORT, "--report", tmp_path)
    done = kvconform("run", "reference", *SHORT, "--report", tmp_path, "--last-failed")
    assert done.returncode == 0 and "nothing failed in the run before: all checks are judged" in done.stderr


def test_a_trace_is_replayed_from_standard_input_on_the_reference() -> None:
    text = trace.dumps(notation.trace("ring", "window=3", "append 3; append 1; rewind 2"))
    done = kvconform("replay", "-", "--draw", stdin=text)
    assert done.returncode == 0 and "refused RING-10" in done.stdout and "append 1" in done.stdout


def test_a_trace_that_needs_what_is_not_declared_says_so(tmp_path: Path) -> None:
    file = write(tmp_path, "t.json", trace.dumps(notation.trace("ring", "window=3", "append 3")))
    done = kvconform("replay", file, "--adapter", "support.fakes.adapters:Fake")
    assert done.returncode == 2 and "does not claim ring, which the trace uses" in done.stderr


@pytest.mark.parametrize("text", ['{"kvtrace": 2, "kind": "ring"', '{"kvtrace": 9}', "[" * 100_000])
def test_a_trace_file_that_is_wrong_ends_with_2(text: str) -> None:
    done = kvconform("replay", "-", stdin=text)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("kvconform: trace: ")
    assert len(done.stderr.splitlines()) == 1


def test_explain_shows_the_clause_and_its_examples_as_they_run() -> None:
    done = kvconform("explain", "ring-4")
    assert done.returncode == 0 and done.stdout.startswith("RING-4 is CACHE-1 now")
    assert (
        "Why: " in done.stdout
        and "CACHE-1, level visible" in done.stdout
        and "Example CACHE-1.2: ring window=" in done.stdout
    )
    chapter = kvconform("explain", "RING")
    assert [line[:7].strip() for line in chapter.stdout.splitlines() if line.startswith("RING-")][:3] == [
        "RING-1",
        "RING-2",
        "RING-3",
    ]


def test_list_knows_every_clause_in_every_format() -> None:
    listed = json.loads(kvconform("list", "clauses", "--format", "json").stdout)
    assert [row["clause"] for row in listed] == list(index())
    assert "| clause" in kvconform("list", "clauses", "--format", "markdown").stdout
    table = kvconform("list").stdout
    assert re.search(r"^reference +kvadapters\.reference:Reference$", table, re.M) and "snapshot" in table


@pytest.mark.parametrize("columns", [70, 80, 120])
@pytest.mark.parametrize(
    "command", ["list chapters", "list clauses", "explain RING", "explain RING-5", "explain STEP"]
)
def test_texts_are_as_wide_as_the_terminal(command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for drawings, addresses and names, which are not broken."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = kvconform(*command.split()).stdout.splitlines()
    prose = [line for line in lines if not re.search(r"https?:|^Example |^ +\d+  |^ {5}\w|\w+\.\w+:\w+$", line)]
    longest = max(map(len, prose))
    assert longest <= columns and (columns == 120 or longest > columns - 20), max(prose, key=len)


SMOKE = {
    "Fake": (0, "ok    growing: free: the cache returns to never written"),
    "NoopRewind": (1, "FAIL  growing: rewind 2: a rewind drops the last row"),
    "RefusesEverything": (1, "FAIL  growing: append 1: one row is appended and read back"),
    "CannotOpen": (1, "opening growing: expected ok, found unsupported (not yet)"),
    "DiesOnView": (0, "ok    growing: free"),
    "RaisesKeyError": (1, "FAIL  growing: free: the cache returns to never written"),
}


@pytest.mark.parametrize(("name", "wanted"), one_in(2, SMOKE.items()), ids=SMOKE)
def test_smoke_tells_what_works_and_what_a_failure_means(name: str, wanted: tuple[int, str]) -> None:
    done = kvconform("smoke", judging.fake(name))
    assert done.returncode == wanted[0] and wanted[1] in done.stdout, done.stdout + done.stderr
    assert ("Likely: " in done.stdout) == ("FAIL" in done.stdout)


def test_smoke_ends_by_naming_the_next_command() -> None:
    for name, said in (("Fake", "kvconform run --quick "), ("NoopRewind", "fix it, then kvconform smoke ")):
        adapter = judging.fake(name)
        assert kvconform("smoke", adapter).stderr.endswith(f"kvconform: next: {said}{adapter}\n")


def test_smoke_asks_for_nothing_that_is_not_claimed() -> None:
    done = kvconform("smoke", "support.engines.dialect_engines:keeps_all")
    assert done.returncode == 0 and "ring: append 1" in done.stdout, done.stdout + done.stderr
    steps, _, tried = done.stdout.partition("Each ability tried once")
    assert "append 0" not in steps and "rewind" not in steps and "ring.rewind: not there" in tried


def test_smoke_proposes_the_dialect_by_which_an_engine_goes_right_and_none_for_a_fault() -> None:
    """Each behaves otherwise than its claim says: one by a dialect, one by a bug."""
    done = kvconform("smoke", "support.engines.undeclared:below")
    assert done.returncode == 0 and "\n  ring.rewind: below\n" in done.stdout, done.stdout + done.stderr
    assert "    dialect={'ring.rewind': 'below'},\n" in done.stdout and '"rewind": "below"' in done.stdout
    done = kvconform("smoke", "support.engines.undeclared:stale_rows")
    assert done.returncode == 1 and "Dialects by which" not in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("asked", ["", "--visible ", "--known a.toml ", "--visible --known a.toml "])
def test_the_next_run_is_judged_by_what_was_asked_for(asked: str) -> None:
    options = cli.parser().parse_args(["run", "reference", *asked.split()], Namespace(process=()))
    assert next_command.after_run(passing(), options) == f"kvconform run {asked}--report report reference"


def test_what_smoke_proposes_to_from_update_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pasted, nothing is left to propose. An adapter that no `from_update` made gets a description alone."""
    said = kvconform("smoke", "support.engines.undeclared:below").stdout
    lines = said.partition("As from_update takes it, beside what is given already:\n\n")[2].partition("\n\n")[0]
    assert "also=('batch', " in lines and "dialect={'ring.rewind': 'below'}," in lines, said
    pasted = f"pasted = dataclasses.replace(below,\n{lines.replace('dialect={', 'dialect={**FIRST, ')}\n)\n"
    imports = "import dataclasses\nfrom support.engines.undeclared import FIRST, below\n"
    (tmp_path / "pasted_claim.py").write_text(imports + pasted, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    assert "    nothing more: it claims this\n" in kvconform("smoke", "pasted_claim:pasted").stdout
    assert "from_update" not in kvconform("smoke", judging.fake("Fake")).stdout


def test_smoke_proposes_dialects_of_chapters_beside_the_kinds_also_one_behind_another() -> None:
    done = kvconform("smoke", "support.engines.rope_engines:ChoosesOnce")
    assert "\n  rope.angles: f32\n" in done.stdout and "\n  rope.long: call\n" in done.stdout, done.stdout
    done = kvconform("smoke", "support.engines.rope_engines:Of16Bits")
    assert "Dialects by which" not in done.stdout, done.stdout


def test_smoke_appends_no_more_rows_than_an_engine_takes_at_once() -> None:
    done = kvconform("smoke", "support.engines.undeclared:one_by_one")
    assert done.returncode == 0 and "append 2" not in done.stdout.partition("Each ability")[0], done.stdout
    assert done.stdout.count("ok    ring: append 1") == 3 and '"limits": {"append": 1' in done.stdout


def test_smoke_says_how_a_worker_ended() -> None:
    done = kvconform("smoke", "support.fakes.lies:DiesBySignal")
    assert done.returncode == 1 and "killed by SIGSEGV" in done.stdout


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [*command_line.command("list", "clauses", "--format", "json")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=judging.fakes.environment()
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
        assert running.wait(20) in (0, 1)
