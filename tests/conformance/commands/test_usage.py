"""The command line's usage: what is wrong is told in one message; help, version, and completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kvconform import cli
from kvconform.commands import options
from kvconform.commands.options import suite
from kvconform.version import SUITE_VERSION
from kvspec import SPEC_VERSION
from kvworkshop import all_mutants
from tools.floors import ROOT

USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown command": (("judge",), "invalid choice: 'judge'"),
    "a misspelt command": (("profil",), "invalid choice: 'profil'; did you mean profile?"),
    "an unknown option": (("run", "reference", "--loud"), "unrecognized arguments: --loud"),
    "a misspelt option": (
        ("run", "reference", "--chaptr", "ring"),
        "--chaptr ring; did you mean --chapter?; see `kvc",
    ),
    "no adapter": (("run",), "name one adapter, or a command after --"),
    "two adapters": (("run", "reference", "--", "engine"), "name one adapter, or a command after --"),
    "an unknown adapter": (("run", "referense"), "unknown adapter 'referense'; did you mean reference?"),
    "an unknown chapter": (("run", "reference", "--chapter", "spiral"), "unknown chapter 'spiral'; known: growing"),
    "an unknown clause": (
        ("run", "reference", "--clause", "RING-99"),
        "unknown clause 'RING-99'; did you mean RING-19",
    ),
    "a clause of no chapter": (("run", "reference", "--clause", "X"), "unknown clause 'X'; known: CACHE-1 to"),
    "a misspelt chapter": (("run", "reference", "--chapter", "rng"), "unknown chapter 'rng'; did you mean ring"),
    "the letters of a chapter": (("run", "reference", "--chapter", "ASK"), "'ASK'; did you mean questions?"),
    "what failed, of no run": (("run", "reference", "--last-failed"), "--last-failed needs --report DIR"),
    "two endings": (("run", "reference", "-x", "--maxfail", "2"), "not allowed with argument -x"),
    "an unknown format": (("run", "reference", "--format", "xml"), "invalid choice: 'xml'"),
    "a negative count": (("run", "reference", "--traces", "-3"), "argument --traces: "),
    "a count of text": (("run", "reference", "--seed", "x"), "'x' is not a whole number of 0 or more"),
    "a count that is no figure": (("run", "reference", "--traces", "5²"), "'5²' is not a whole number of 0"),
    "a report into nothing": (("run", "reference", "--report", ""), "--report: an empty text is no value"),
    "no version at all": (("run", "reference", "--require-spec="), "--require-spec: an empty text is no value"),
    "a folder of nothing": (("probe", "llama", "-o", ""), "-o: an empty text is no value; is a variable not set?"),
    "a huge count": (("run", "reference", "--memory", "9" * 20), "9999' is more than 1099511627776"),
    "a count of 5,000 figures": (("run", "reference", "--seed", "9" * 5000), "is more than 1099511627776"),
    "a huge deadline": (("run", "reference", "--deadline", "1e400"), "of seconds above 0 and below a million"),
    "a deadline of nothing": (("run", "reference", "--deadline", "0"), "'0' is not a number of seconds above 0"),
    "a deadline that is no number": (("run", "reference", "--deadline", "nan"), "'nan' is not a number of seconds"),
    "an option with a value that it has not": (
        ("run", "reference", "--visible=storage"),
        "argument --visible: ignored explicit argument 'storage'",
    ),
    "a module that is not there": (("run", "no_such_module:Adapter"), "no_such_module:Adapter: cannot be imported"),
    "an attribute that is not there": (("run", "support.fakes.lies:Nobody"), "has no attribute 'Nobody'"),
    "a description of nothing": (("run", "support.fakes.lies:DescribesNothing"), "describe: name must be"),
    "a description of what there is not": (
        ("run", "support.fakes.lies:DescribesUnknownChapter"),
        "unknown chapter 'spiral'",
    ),
    "a known deviation from no clause": (("run", "support.fakes.declarations:KnownOfNoClause"), "'GROW-700'"),
    "a known deviation that is a whole clause": (
        ("run", "support.fakes.declarations:KnownWholeClause"),
        "known must be a list of deviations",
    ),
    "a known deviation that is any": (
        ("run", "support.fakes.declarations:KnownByAnyMessage"),
        "fits any failure of its sort",
    ),
    "a known deviation that is code": (
        ("run", "support.fakes.declarations:KnownByCode"),
        "known[0]: model 'engine.py:Clips' is code: write the entry into kvconform.toml beside it",
    ),
    "a command that is not there": (("run", "--", "./no-such-engine"), "cannot start ./no-such-engine"),
    "a command that says nothing": (
        ("run", "--", "true"),
        "its worker does not start: CRASH: exited with status 0",
    ),
    "a command that talks": (("run", "--", "echo", "hello"), "its worker does not start: PROTOCOL"),
    "smoke of an unknown adapter": (("smoke", "referense"), "unknown adapter 'referense'"),
    "strict attention of an unknown adapter": (("strict", "referense"), "unknown adapter 'referense'"),
    "an unknown clause to explain": (("explain", "RING-99"), "unknown clause 'RING-99'; did you mean RING-19"),
    "a clause far behind the last": (("explain", "RING-" + "9" * 999), "99; known: RING-1 to RING-"),
    "an unknown list": (("list", "engines"), "invalid choice: 'engines'"),
    "a trace that is not there": (("replay", "no-such.json"), "'no-such.json' is no file, and no trace in words"),
    "a trace without its colon": (
        ("replay", "ring window=4 append 5"),
        "is no file, and no trace in words, such as",
    ),
    "an adapter without a module": (
        ("smoke", ":Ring"),
        "':Ring' lacks its module or its class; write",
    ),
    "an adapter without a class": (("smoke", "engine:"), "'engine:' lacks its module or its class"),
    "a misspelt chapter to explain": (("explain", "RNG"), "unknown chapter 'RNG'; did you mean RING"),
    "a misspelt size in a trace": (("replay", "ring windw=3: append 1"), "field 'windw'; did you mean window?"),
    "a misspelt kind in a trace": (("replay", "rng window=3: append 1"), "copy, store, page, ragged, bucket, sink"),
    "a misspelt operation": (("replay", "ring window=3: apend 1"), "operation 'apend'; did you mean append"),
    "a misspelt argument": (
        ("replay", "ring window=3: append 1 fil=bits"),
        "argument 'fil'; did you mean fill?",
    ),
    "a misspelt fill": (("replay", "ring window=3: append 1 fill=bts"), "is 'bts'; did you mean bits"),
    "a misspelt mask": (("replay", "ring window=3: append 1; mask causl"), "did you mean causal?"),
    "a misspelt dtype": (("replay", "ring window=3 dtype=f61: append 1"), "is 'f61'; did you mean f16"),
    "a trace that uses what is not claimed": (
        ("replay", "growing: append 1; view", "--adapter", "support.fakes.parts_of_reference:growing-view_visible"),
        "does not claim growing.view, which the trace uses",
    ),
    "a pattern of mutants that is wrong": (("mutants", "--match", "("), "--match: '(' is no regular expression"),
    "a proof without windows": (("prove", "reference", "--window", "0"), "argument --window: it must be 1 or more"),
    "a proof of a huge window": (("prove", "reference", "--window", "65"), "--window: it is at most 64"),
    "a proof beside many states": (("prove", "reference", "--k", "17"), "--k: it is at most 16"),
    "a proof of a misspelt chapter": (("prove", "reference", "--chapter", "rng"), "'rng'; did you mean ring"),
    "a matrix that is not there": (("mutants", "--again", "no-such.json"), "no-such.json: cannot be read"),
    "a hunt that nobody began": (("mutants", "--resume"), "--resume goes on with what --report DIR holds"),
    "a command that says nothing, to prove": (
        ("prove", "--chapter", "ring", "--", "true"),
        "its worker does not start: CRASH",
    ),
    "a folder in the place of a record": (("report", "."), ". is a folder; name a file in it, such as record.json"),
    "a folder in the place of a board's record": (
        ("board", ".", "--out", "b"),
        ". is a folder; name a file in it, such as record.json",
    ),
    "a record that is not there": (
        ("report", "no-such.json"),
        "directory; `kvconform run --report DIR` writes one",
    ),
    "a journal that is not there": (("report", "no-such.jsonl"), "no-such.jsonl: cannot be read"),
    "what failed, of another folder": (
        ("run", "reference", "--last-failed", "--report", "."),
        "journal.jsonl: cannot be read: No such file or directory; `kvconform run --report DIR` writes one",
    ),
    "a record for a site that is not there": (
        ("site", "no-such.json", "--out", "s"),
        "no-such.json: cannot be read",
    ),
    "vectors of a misspelt chapter": (
        ("vectors", "export", "--out", "v", "--chapter", "rng"),
        "unknown chapter 'rng'; did you mean ring",
    ),
    "a folder without a probe": (
        ("ask", "transformers", "."),
        "probe.json: cannot be read: No such file or directory; `kvconform probe` writes such a folder",
    ),
    "two adapters by their names": (("run", "reference", "opencl"), "'opencl' is one name too many"),
    "two clauses to explain": (("explain", "RING-1", "RING-2"), "'RING-2' is one name too many"),
    "no memory": (("run", "reference", "--memory", "0"), "argument --memory: it must be 1 or more"),
    "what came before, where nothing is judged": (
        ("replay", "ring window=3: append 1", "--after", "ring window=3: append 1"),
        "without an adapter there is no use for --after",
    ),
    "a command that says nothing, to replay on": (
        ("replay", "ring window=3: append 1", "--", "true"),
        "true: its worker does not start: CRASH: exited with status 0",
    ),
    "a name for no adapter": (("new-adapter", "My Engine"), "'My Engine' cannot name an adapter"),
    "a name that is taken": (("new-adapter", "reference"), "an adapter 'reference' exists already"),
}


@pytest.mark.parametrize(("arguments", "words"), USAGE.values(), ids=USAGE)
def test_bad_usage_ends_with_2_and_one_message(
    arguments: tuple[str, ...], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, (out, err) = cli.main(arguments), capsys.readouterr()
    said = [line for line in err.splitlines() if not line.startswith("kvconform: judging ")]
    assert (status, out, len(said)) == (2, "", 1) and words in said[0], err
    assert list(here.iterdir()) == []


FILES: dict[str, tuple[bytes, tuple[str, ...], str]] = {
    "another TOML file for known deviations": (
        b"[tool]\n",
        ("run", "reference", "--known", "file"),
        "file: unknown field 'tool'; entries begin with [[known]]",
    ),
    "bytes for known deviations": (
        bytes(range(256)),
        ("run", "reference", "--known", "file"),
        "file: not TOML, which is text in UTF-8",
    ),
    "another JSON file for a trace": (
        b'{"kvrecord": 2}',
        ("replay", "file"),
        "file: not a trace (no kvtrace); a report",
    ),
    "half a file for a trace": (b'{"kvtrace": 2, ', ("replay", "file"), "file: not complete JSON"),
    "bytes for a trace": (bytes(range(256)), ("replay", "file"), "file: not complete JSON (it is no text)"),
    "bytes for a record": (bytes(range(256)), ("report", "file"), "file: not complete JSON (it is no text)"),
    "another JSON file for a record": (
        b'{"kvtrace": 2}',
        ("report", "file"),
        "file: not a run record (no kvrecord)",
    ),
    "a file for the folder of a hunt": (
        b"",
        ("mutants", "--report", "file"),
        "file: cannot be made",
    ),
    "a file for the folder of a soak": (
        b"",
        ("soak", "reference", "--out", "file"),
        "file is a file; name",
    ),
    "a matrix for a run": (b'{"kvmatrix": 2}', ("mutants", "--again", "file"), "file: not a mutation matrix"),
}
"""A file `file` that is another than what is wanted, the command, and words that it must say."""


@pytest.mark.parametrize(("data", "arguments", "words"), FILES.values(), ids=FILES)
def test_a_wrong_file_ends_with_2_and_one_message_that_names_it(
    data: bytes, arguments: tuple[str, ...], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_bytes(data)
    status, (out, err) = cli.main(arguments), capsys.readouterr()
    said = [line for line in err.splitlines() if not line.startswith("kvconform: judging ")]
    assert (status, out, len(said)) == (2, "", 1) and words in said[0], err


def test_without_a_command_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    out, err = capsys.readouterr()
    assert out == cli.parser().format_help() and err == "" and "kvconform demo" in out


def test_the_help_has_every_command_once_in_its_group_and_fits_80_columns() -> None:
    text = cli.parser().format_help()
    heads = [line for line in text.splitlines() if line.endswith(":") and not line.startswith("usage")]
    assert heads == ["Judge:", "Look up:", "Publish:", "Test the suite itself:"]
    assert max(map(len, text.splitlines())) <= 80
    named = re.findall(r"^  ([a-z-]+) +[a-z]", text, re.M)
    assert named == list(options.COMMANDS) and len(set(named)) == len(named)


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert (cli.main(["--version"]), capsys.readouterr().out) == (
        0,
        f"kvconform {SUITE_VERSION}, spec {SPEC_VERSION}\n",
    )


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from kvconform.cli import main; main(['run', '--help']);"
        "heavy = {'numpy', 'hypothesis', 'jinja2', 'pytest', 'msgspec', 'tabulate'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def completed(line: str) -> set[str]:
    """What a shell that completes this line would be offered."""
    out = Path("completions")
    given = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(out)}
    environment = os.environ | given | {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    subprocess.run([sys.executable, "-m", "kvconform"], env=environment, check=False, capture_output=True)
    return {word.strip() for word in out.read_text().splitlines()}


@pytest.mark.skipif(find_spec("argcomplete") is None, reason="needs argcomplete")
@pytest.mark.parametrize(
    ("line", "word"),
    [("kvconform pro", "prove"), ("kvconform run openc", "opencl"), ("kvconform run --chapter sn", "snapshot")],
)
def test_a_shell_can_complete_commands_adapters_and_chapters(line: str, word: str, here: Path) -> None:
    assert word in completed(line)


def test_what_can_be_chosen_is_all_there_is() -> None:
    assert set(suite.KINDS) == set(all_mutants.KINDS)


@pytest.mark.parametrize("command", ["run", "mutants", "soak"])
def test_help_and_the_page_on_security_say_who_runs_code_over_tcp(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "--help"]) == 0
    help_ = " ".join(capsys.readouterr().out.split())
    assert "tls://host:8786. Over tcp:// anybody who reaches its port can run code here and there" in help_
    page = " ".join((ROOT / "docs/SECURITY.md").read_text(encoding="utf-8").split())
    assert "over `tcp://` can run code there" in page and "Use `tls://`" in page
    assert "Verdicts themselves come back as JSON" in page
