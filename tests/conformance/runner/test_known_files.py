"""Known deviations as files: what an entry may say, what is refused, and the commands that read one."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from kvconform.runner.verdict import known, outcomes
from kvconform.runner.verdict.known import KnownDeviation
from kvspec.contract import description
from kvspec.errors import BadInput
from support.engines import known_engines
from support.running import command_line
from support.running.known import ENTRY, MODEL, TRIM, WORDS

WIDE_PATTERNS = (
    *("sees *", "sees *; expected", "query * sees ", "sees", "expected", "found ok", "offset: expected"),
    *(
        "offset: * found",
        "found",
        "*",
        "view: expected",
        "does not fit",
        "expected ok, found error",
        "can: expected",
    ),
)


@pytest.mark.parametrize("shows", WIDE_PATTERNS)
def test_a_pattern_that_fits_any_failure_of_its_sort_is_refused(shows: str) -> None:
    for trace in ("", WORDS):
        with pytest.raises(BadInput, match="write a model"):
            outcomes.demand_tight(shows, trace, "here")


def test_a_message_that_all_failures_of_its_sort_have_needs_its_trace() -> None:
    outcomes.demand_tight("expected refused CACHE-3, found ok", WORDS, "here")
    with pytest.raises(BadInput, match="give its trace too"):
        outcomes.demand_tight("expected refused CACHE-3, found ok", "", "here")


@pytest.mark.parametrize(
    "shows",
    ["query 1 sees a b; expected b", "offset: expected 0, found 1", "query 9 sees a; expected b (n from 9 on)"],
)
def test_a_printed_message_is_taken_and_matches_itself(shows: str) -> None:
    outcomes.demand_tight(shows, "", "here")
    assert outcomes.matches(shows, shows) and not outcomes.matches(shows, "offset: expected 0, found 2")


OF_ITS_VERSION = {">=1.4,<1.6": True, "==1.5": True, ">=1.6": False, "<1.5": False}


@pytest.mark.parametrize(("versions", "holds"), OF_ITS_VERSION.items())
def test_it_holds_for_its_versions(versions: str, holds: bool) -> None:
    entry = KnownDeviation("RING-7", "not counted", shows=TRIM.shows, versions=versions)
    assert bool(known.applying((entry,), description(known_engines.forgets.describe()))) == holds


def test_it_holds_for_its_adapter() -> None:
    entry = KnownDeviation("RING-7", "not counted", shows=TRIM.shows, adapter="another")
    assert not known.applying((entry,), description(known_engines.forgets.describe()))


WRONG = {
    "[[known]]\nclause = ": "Invalid value (at end of document)",
    '[[known]]\nclause = "RING-7"\nshows = "x"\n': "kvconform.toml: known[0]: reason is missing",
    ENTRY + ENTRY.replace("RING-7", "RING-700"): "known[1]: there is no clause 'RING-700'",
    ENTRY.replace("shows", "show"): "kvconform.toml: known[0]: unknown field 'show'",
    ENTRY.replace("shows", "trace").replace(
        "offset: expected 0, found 1", WORDS
    ): "known[0]: give beside the trace",
    MODEL + 'shows = "offset: expected 0, found 1"\n': "known[0]: give either what the engine does",
    ENTRY + 'model = "m.py:X"\n': "known[0]: give either what the engine does",
    MODEL.replace('"x"', '"m.py:X"'): "known[0]: model: ",
    MODEL.replace('model = "x"', 'dialect = { "ring.rewnd" = "below" }'): "there is no dialect 'ring.rewnd'",
    ENTRY.replace('"not counted"', '""'): "known[0]: give the clause and the reason",
    ENTRY + 'versions = "1.4 or so"\n': "known[0]: versions '1.4 or so' is no specifier such as '>=1.4,<1.6'",
    ENTRY + 'trace = "ring window=3: apend 3"\n': "known[0]: trace: 'apend 3': unknown operation 'apend'",
    "known = 3\n": "kvconform.toml: known: expected a list, found a whole number",
}


@pytest.mark.parametrize(("text", "words"), WRONG.items())
def test_an_error_of_the_file_says_what_and_where(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "kvconform.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as raised:
        known.read(file)
    assert str(file) in str(raised.value) and words in str(raised.value)


def test_a_file_that_is_not_there_is_an_error_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert known.read(None) == ()
    with pytest.raises(BadInput, match="cannot be read"):
        known.read(Path("other.toml"))


def test_a_version_that_is_none_is_an_error() -> None:
    about = description({"name": "x", "version": "build b1234", "chapters": {"ring": "visible"}})
    entry = KnownDeviation("RING-7", "not counted", shows="x", versions=">=1")
    with pytest.raises(BadInput, match="'build b1234', which is no PEP 440 version"):
        known.applying((entry,), about)


def test_the_command_reads_the_file_of_its_folder_and_junit_skips(tmp_path: Path) -> None:
    (tmp_path / "kvconform.toml").write_text(ENTRY + 'link = "https://a.b"\n')
    options = ("--clause", "RING-7", "--quick", "--processes", "1", "--report", tmp_path / "report")
    done = command_line.kvconform("run", f"{known_engines.__name__}:forgets", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "XFAIL" in done.stdout and "FAIL RING-7 in" not in done.stderr
    (suite,) = ElementTree.parse(tmp_path / "report" / "junit.xml").getroot()
    skipped = [case.find("skipped") for case in suite if case.find("skipped") is not None]
    assert suite.get("failures") == "0" and suite.get("skipped") == str(len(skipped)) != "0"
    assert skipped[0] is not None
    assert skipped[0].get("message") == "known: not counted (https://a.b)"
    assert "breaks RING-7" in str(skipped[0].text) and "offset: expected" in str(skipped[0].text)
    for page in ("report.html", "report.md"):
        assert "not counted" in (tmp_path / "report" / page).read_text()


def test_a_replay_says_what_is_known_and_fails_for_what_is_not(tmp_path: Path) -> None:
    engine = ("--adapter", f"{known_engines.__name__}:forgets")
    without = command_line.kvconform("replay", WORDS, *engine, cwd=tmp_path)
    assert without.returncode == 1 and "FAIL: RING-7: offset: expected" in without.stdout
    (tmp_path / "kvconform.toml").write_text(ENTRY)
    done = command_line.kvconform("replay", WORDS, *engine, cwd=tmp_path)
    assert done.returncode == 0 and "known (not counted): RING-7: offset: expected" in done.stdout, done.stdout


def test_what_the_adapter_declares_is_skipped_by_junit_too(tmp_path: Path) -> None:
    options = ("--clause", "CACHE-7", "--quick", "--processes", "1", "--report", tmp_path)
    done = command_line.kvconform("run", "support.fakes.declarations:KnownDeviation", *options)
    assert done.returncode == 0 and "FAIL" not in done.stderr, done.stdout + done.stderr
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("failures") == "0" and suite.get("skipped") != "0"


def test_a_file_that_is_wrong_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("known = 3\n")
    done = command_line.kvconform("run", "reference", "--known", file)
    assert done.returncode == 2 and "mine.toml" in done.stderr and "Traceback" not in done.stderr
