"""The example engines: each is built where its compiler is there, conforms, and has a planted bug that is named."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvconform.checks import examples, laws
from kvconform.runner.record.record import record
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict.observation import COPIED
from kvconform.runner.verdict.tally import Tally
from kvconform.worker.client import Worker, python_worker
from kvspec.errors import CannotRun
from kvspec.reading.clauses import index
from kvspec.records.run import Record
from support import fakes
from support.running import judging, site_package
from support.running.command_line import kvconform
from support.slow import one_in

ENGINES = Path(__file__).parents[2] / "docs" / "examples" / "engines"


@dataclass(frozen=True)
class Language:
    """How an engine is built and started, and what its planted bug breaks."""

    tool: str
    build: tuple[str, ...] = ()
    """The compiler's command; it writes `engine` into the folder that it runs in."""
    starts: tuple[str, ...] = ("./engine",)
    slip: str = ""
    breaks: str = ""


LANGUAGES = {
    "python": Language("python3", slip="free", breaks="CACHE-6"),
    "c": Language(
        "cc", ("-std=c11", "-O1", "-Wall", "-Werror", "-o", "engine", "c/engine.c"), slip="window", breaks="RING-25"
    ),
    "rust": Language("rustc", ("-Dwarnings", "-o", "engine", "rust/engine.rs"), slip="wrap", breaks="RING-24"),
    "javascript": Language("node", starts=("node", "javascript/engine.js"), slip="rewind", breaks="CACHE-8"),
}


@pytest.fixture(scope="module", params=one_in(4, LANGUAGES))
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def command(language: str, tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """The command line of the engine. Raises CannotRun where there is no compiler."""
    how, folder = LANGUAGES[language], tmp_path_factory.mktemp(language)
    if shutil.which(how.tool) is None:
        raise CannotRun(f"{how.tool} is not installed; the {language} engine is not built")
    if language == "python":
        return python_worker("example-python")
    if how.build:
        *options, source = how.build
        build = [how.tool, *options, str(ENGINES / source)]
        done = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return [str(folder / how.starts[0])]
    return [how.starts[0], str(ENGINES / how.starts[1])]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder in which the Python package is installed."""
    package, folder = shutil.copytree(ENGINES / "python", tmp_path_factory.mktemp("package") / "python"), "site"
    return str(site_package.installed(package, package.parent / folder))


def judged(command: Sequence[str], site: str, slip: str = "") -> Record:
    """The record of all worked examples and laws of the chapters that an engine claims."""
    with Worker(command, env=fakes.environment(site) | {"KV_SLIP": slip}) as worker:
        under_test, total = AdapterUnderTest(worker, worker.describe(), traces=5), Tally()
        claimed = set(under_test.adapter.chapters)
        for check in (check for check in (*examples.checks(), *laws.checks()) if check.needs <= claimed):
            with under_test.judging(check.id) as tally:
                check.run(under_test)
            total.merge(tally)
    selected = {i: c for i, c in index().items() if c.claimed(claimed)}
    return record(total, under_test.adapter, selected, judging.ABOUT)


def test_an_engine_conforms(command: Sequence[str], site: str) -> None:
    whole = judged(command, site)
    assert (whole.exit_status, judging.broken(whole), whole.problems) == (0, set(), [])
    assert {"growing", "ring"} <= set(whole.adapter["chapters"])


def test_who_owns_arrays_is_looked_at_only_within_one_process(
    language: str, command: Sequence[str], site: str
) -> None:
    whole = judged(command, site)
    for clause in ("CACHE-4",):
        found = judging.clause(whole, clause)
        assert (COPIED in found.reason) == (language != "python"), found.reason


def test_the_planted_bug_of_an_engine_is_found_and_named(language: str, command: Sequence[str], site: str) -> None:
    how = LANGUAGES[language]
    whole = judged(command, site, how.slip)
    assert whole.exit_status == 1 and judging.verdicts(whole)[how.breaks] == "FAIL"
    assert len(whole.failures[0].steps) <= 3


def test_an_engine_is_run_from_the_command_line(
    language: str, command: Sequence[str], site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(site)
    done = kvconform("smoke", *(["example-python"] if language == "python" else ["--", *command]))
    assert done.returncode == 0 and f"example-{language}" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("language", ["rust"], indirect=True)
@pytest.mark.parametrize("slip", ["", "wrap"])
def test_the_log_of_an_engine_is_judged_without_it(
    language: str, command: Sequence[str], slip: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    subprocess.run([*command, "--log", str(file)], env={"KV_SLIP": slip}, check=True)
    done = kvconform("check", file)
    assert done.returncode == bool(slip), done.stdout + done.stderr
    assert ("Look first at RING-1: FAIL" in done.stdout) == bool(slip)
    assert all((clause in done.stdout) == bool(slip) for clause in ("RING-24", "RING-26"))
    assert ("line 6: history.k: slot 0" in done.stderr) == bool(slip)
