"""pytest as a front end: the checks as its tests, with its own options."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from kvconform.checks.check import judge
from kvconform.checks.suite import selected
from kvconform.runner.record.record import record
from kvconform.runner.settings import Settings
from kvconform.runner.verdict.tally import Tally
from kvreports import json_file
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from support.fakes.adapters import AcceptsAnyRewind
from support.running import judging
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

FAULTY = "support.fakes.adapters:AcceptsAnyRewind"


def front_end(folder: Path, *arguments: str, plugins: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run pytest on the checks, in an empty folder, with nobody else's plugins."""
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "--pyargs", "kvconform.checks"]
    command += [option for name in ("kvconform.plugin", *plugins) for option in ("-p", name)]
    return subprocess.run(
        [*command, *arguments],
        env=judging.fakes.environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def written(folder: Path) -> Record:
    return json_file.load(folder / "report" / "record.json", Record)


def test_a_check_is_selected_by_its_id_and_checks_of_ones_own_count_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "from kvspec import notation\n"
        "def test_own(under_test):\n"
        "    under_test.judge(notation.trace('growing', '', 'append 1; append 2'), 'explore')\n"
        "    under_test.require_no_difference()\n"
    )
    asked = ("-k", "test_own or (example and GROW-1.1)", "--kv-report", "report", str(tmp_path / "test_own.py"))
    done = front_end(tmp_path, "--kv-adapter", "reference", *asked)
    assert done.returncode == 0 and re.search(r"^2 passed, \d+ deselected", done.stdout, re.M), done.stdout
    seen = written(tmp_path)
    assert judging.verdicts(seen)["GROW-1"] == "PASS" and seen.partial
    assert re.fullmatch(r"pytest judged 1 of \d+ checks", seen.partial_reason)
    assert judging.clause(seen, "GROW-1").tests == ["growing/example/GROW-1.1", "test_own.py::test_own"]


def test_a_check_that_judges_no_trace_is_skipped_with_the_reason(tmp_path: Path) -> None:
    two = ("-rs", "-k", "ring/example/RING-1.1 or ring/example/RING-1.2")
    done = front_end(tmp_path, "--kv-adapter", "support.fakes.limited:WideWindows", *two)
    assert done.returncode == 0 and re.search(r"^1 passed, 1 skipped, \d+ deselected", done.stdout, re.M), (
        done.stdout
    )
    assert "none of its traces is within what the adapter claims" in done.stdout


def test_a_failure_shows_its_trace_and_is_run_again_by_lf(tmp_path: Path) -> None:
    done = front_end(tmp_path, "--kv-adapter", FAULTY, "-k", "growing and example and (CACHE-7 or GROW-1.1)")
    assert done.returncode == 1 and re.search(r"^1 failed, 1 passed", done.stdout, re.M), done.stdout
    assert "Differs: FAIL CACHE-7: expected refused CACHE-7, found ok" in done.stdout
    assert "growing kv_heads=1: rewind 1" in done.stdout and "Traceback" not in done.stdout
    assert "FAILED kvconform.checks::growing/example/CACHE-7.1" in done.stdout
    again = front_end(tmp_path, "--kv-adapter", FAULTY, "--lf")
    assert again.returncode == 1 and re.search(r"^1 failed, \d+ deselected", again.stdout, re.M), again.stdout


@pytest.mark.slow
def test_it_stops_at_the_first_failure_if_asked_to(tmp_path: Path) -> None:
    done = front_end(tmp_path, "--kv-adapter", FAULTY, "-x", "-k", "growing and example")
    assert done.returncode == 1 and "stopping after 1 failures" in done.stdout


def test_a_known_deviation_is_an_xfail(tmp_path: Path) -> None:
    entry = (
        '[[known]]\nclause = "CACHE-7"\nmodel = "missing-refusal/GrowingClamps"\nreason = "rewinds are clipped"\n'
    )
    (tmp_path / "kvconform.toml").write_text(entry)
    done = front_end(tmp_path, "--kv-adapter", FAULTY, "-rx", "-k", "growing and example and (CACHE-7 or GROW-1.1)")
    assert done.returncode == 0 and re.search(r"^1 passed, \d+ deselected, 1 xfailed", done.stdout, re.M), (
        done.stdout
    )
    assert "rewinds are clipped" in done.stdout


@pytest.mark.slow  # as one of a file, above
def test_a_deviation_that_the_adapter_declares_is_an_xfail(tmp_path: Path) -> None:
    asked = ("-rx", "-k", "growing and example and (CACHE-7 or GROW-1.1)")
    done = front_end(tmp_path, "--kv-adapter", "support.fakes.declarations:KnownDeviation", *asked)
    assert done.returncode == 0 and re.search(r"^1 passed, \d+ deselected, 1 xfailed", done.stdout, re.M), (
        done.stdout
    )
    assert "known: rewinds are clipped. CACHE-7: expected refused CACHE-7, found ok" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
def test_the_processes_of_xdist_tell_one_record(tmp_path: Path) -> None:
    options = ("--kv-adapter", FAULTY, "-k", "growing/law or growing/example", "--kv-report", "report")
    done = front_end(tmp_path, *options, "--kv-traces", "5", "-n", "2", plugins=("xdist.plugin",))
    assert done.returncode == 1, done.stdout + done.stderr
    seen, alone = written(tmp_path), judged_here("growing/law/", "growing/example/")
    assert judging.clause(seen, "CACHE-7").verdict == "FAIL"
    assert all(failure.diagnosis for failure in seen.failures)
    undiagnosed = {"diagnosis": UNSET, "entry": UNSET}  # an entry is proposed from the diagnosis
    told, own = ([replace(failure, **undiagnosed) for failure in record.failures] for record in (seen, alone))
    assert seen.clauses == alone.clauses and told == own


def judged_here(*starts: str) -> Record:
    """The record of some checks, judged in this process."""
    under_test, total = LocalAdapter(AcceptsAnyRewind(), traces=5), Tally()
    for check in selected(Settings(FAULTY), under_test.adapter):
        if check.id.startswith(starts):
            total.merge(judge(under_test, check).tally)
    about = judging.ABOUT | {"partial": True}
    return json_file.loads(json_file.dumps(record(total, under_test.adapter, dict(index()), about)), Record)


@pytest.mark.parametrize(
    ("arguments", "words"),
    one_in(
        3,
        [
            (("--kv-adapter", "referense"), "referense: unknown adapter 'referense'"),
            ((), "the suite judges an adapter: name it with --kv-adapter"),
            (("--kv-adapter", "support.fakes.lies:NeedsADevice"), "there is no such device here"),
        ],
    ),
)
def test_what_cannot_be_judged_is_said_in_a_line(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = front_end(tmp_path, *arguments)
    assert done.returncode in (2, 4) and words in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_without_an_adapter_it_is_one_usage_error(tmp_path: Path) -> None:
    done = front_end(tmp_path)
    assert (done.returncode, done.stdout) == (pytest.ExitCode.USAGE_ERROR, "")
    assert done.stderr.strip().startswith("ERROR: the suite judges an adapter: name it with --kv-adapter")


def test_the_plugin_loads_nothing_heavy_into_the_tests_of_others(tmp_path: Path) -> None:
    own = {"hypothesis", "numpy", "msgspec", "kvspec", "kvreports"}
    (tmp_path / "test_own.py").write_text(f"import sys\ndef test_own():\n    assert not {own} & set(sys.modules)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "kvconform.plugin", "test_own.py"]
    alone = judging.fakes.environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
