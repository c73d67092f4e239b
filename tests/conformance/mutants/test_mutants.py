"""`kvconform mutants`: what it runs, what it writes, when it fails; and that every argument is about a mutant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform import cli
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.planting import Patch
from kvconform.runner.record.provenance import suite_digest
from kvspec.geometry import Config
from kvspec.tables import table
from kvspec.trace import Trace
from kvworkshop import all_mutants, controls, hunt_tasks, matrix
from kvworkshop.hunt import HuntResult, Kill
from kvworkshop.systematic import equivalents, modules
from support.slow import one_in

ARGUED = r"^reference/casts\.narrowed: array\.astype\(np\.float64\): not rounded"
"""One that is argued to be none, where little is drawn."""
HANDFUL = r"^reference/casts\.narrowed: (array|np\.rint|np\.abs|DTYPES|x /)"
"""Few, all found by worked examples; one of them argued to be none."""


@pytest.fixture(scope="module")
def every() -> list[Mutant]:
    """All mutants there are."""
    return [m for kind in all_mutants.KINDS.values() for m in kind()]


def test_no_two_mutants_have_one_id(every: list[Mutant]) -> None:
    ids = [m.id for m in every]
    assert len(ids) == len(set(ids)) > 4000


def test_no_mutant_names_a_module_or_a_file(every: list[Mutant]) -> None:
    assert [
        m.id for m in every if re.search(r"\bkv(spec|ref|adapters|conform)\.|\.(py|inc)\b", m.id + m.says)
    ] == []


def test_every_known_bug_finds_the_lines_that_it_replaces() -> None:
    for mutant in known_bugs().values():
        mutant.adapter()


def test_a_place_begins_the_id(every: list[Mutant]) -> None:
    systematic = [m for m in every if m.bug_class == "systematic"]
    assert all(m.id.startswith(m.place) and m.place[0].startswith(m.place) for m in systematic)


@pytest.mark.parametrize(
    ("message", "frozen"),
    [
        ("found error (TypeError: no (store.py:37))", "found error (TypeError: no)"),
        ("error (KeyError: 'a' (<kvref.caches.ring changed>:3))", "error (KeyError: 'a')"),
        ("TypeError: kvref.caches.growing.Growing.append() argument", "TypeError: Growing.append() argument"),
        ("offset: expected 3 (of 4), found 2", "offset: expected 3 (of 4), found 2"),
    ],
)
def test_a_message_says_nothing_of_where_code_lies(message: str, frozen: str) -> None:
    assert matrix.movable(message) == frozen


def test_every_argument_is_about_a_mutant_that_there_is(every: list[Mutant]) -> None:
    ids = {name for m in every if m.place for name in (m.id, re.sub(r" #\d+$", "", m.id))}
    assert sorted(equivalents.arguments().keys() - set(map(equivalents.key, ids))) == []


def test_every_argument_says_something(every: list[Mutant]) -> None:
    assert [i for i, why in equivalents.arguments().items() if len(why.split()) < 3] == []
    assert {m.equivalent for m in every} >= set(equivalents.arguments().values())


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The command's exit status, and what it printed."""
    capsys.readouterr()
    status = cli.main(["mutants", "--processes", "1", "--format", "json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_a_handful_is_found_and_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, document = run(capsys, "--kind", "reference", "--match", HANDFUL, "--report", str(tmp_path))
    assert status == 0 and json.loads((tmp_path / "mutants.json").read_text()) == document
    assert len(document["mutants"]) > 3
    for m in [m for m in document["mutants"] if not m["equivalent"]]:
        assert m.keys() >= {"id", "class", "link", "killed", "by", "operations", "equivalent"}
        assert m["class"] == "systematic" and m["killed"] is True and m["equivalent"] == ""
        assert m["sources"]["examples"] and m["by"] and 1 <= m["operations"] <= 8 and m["trace"] and m["message"]


@pytest.mark.parametrize(("why", "ends"), [(KeyboardInterrupt(), 130), (ValueError("a fault of the harness"), 3)])
def test_what_was_hunted_is_written_and_resumed_whatever_ended_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    why: BaseException,
    ends: int,
) -> None:
    """Hunts of three mutants: the second one is interrupted, and then the two that are left are hunted."""
    three = [one(id=name, chapters=("growing",), adapter=controls.Losing) for name in "abc"]
    monkeypatch.setitem(all_mutants.KINDS, "reference", lambda: iter(three))
    hunted, all_of = list[str](), hunt_tasks.all_of

    def watched(mutants: Sequence[Mutant], *others: Any) -> Iterator[HuntResult]:
        for found in all_of(mutants, *others):
            if interrupted and hunted:
                raise why
            hunted.append(found.id)
            yield found

    monkeypatch.setattr(hunt_tasks, "all_of", watched)
    arguments = ("--kind", "reference", "--report", str(tmp_path))
    interrupted = True
    status, document = run(capsys, *arguments)
    assert (status, document["left"], [m["id"] for m in document["mutants"]]) == (ends, 2, ["a"])
    interrupted = False
    status, document = run(capsys, *arguments, "--resume")
    assert (status, document["left"], [m["id"] for m in document["mutants"]]) == (0, 0, ["a", "b", "c"])
    assert hunted == ["a", "b", "c"]
    assert json.loads((tmp_path / "mutants.json").read_text()) == document


def test_a_survivor_is_hunted_again_and_what_is_argued_since_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("--kind", "reference", "--report", str(tmp_path), "--resume")
    for why, wanted in ("", (1, True)), ("", (1, True)), ("it is the reference", (0, False)), ("", (1, True)):
        survivor = one(chapters=("copy",), equivalent=why)
        monkeypatch.setitem(all_mutants.KINDS, "reference", partial(iter, [survivor]))
        status, document = run(capsys, *arguments)
        assert (status, bool(document["mutants"][0]["sources"])) == wanted


def test_what_another_suite_began_is_not_resumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["mutants", "--kind", "reference", "--match", ARGUED, "--report", str(tmp_path)]) == 0
    path = tmp_path / "mutants.json"
    path.write_text(path.read_text().replace(suite_digest(without="equivalents"), "0" * 16))
    for more, words in (("--report", str(tmp_path)), "made by another"), ((), "name the folder"):
        capsys.readouterr()
        assert cli.main(["mutants", "--kind", "reference", "--match", ARGUED, "--resume", *more]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.slow
def test_those_that_are_argued_are_tried_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--argued",)):
        status, document = run(capsys, "--kind", "reference", "--match", ARGUED, *more)
        argued = [m for m in document["mutants"] if m["equivalent"]]
        assert status == 0 and argued and not any(m["killed"] for m in argued)
        assert all(bool(m["sources"]) == bool(more) for m in argued)


def one(**known: Any) -> Mutant:
    """A mutant that is none: the reference as it is."""
    plain = {"id": "one", "bug_class": "systematic", "says": "", "clauses": (), "adapter": Reference}
    return Mutant(**{**plain, **known})


@pytest.mark.parametrize(
    ("mutant", "status"),
    one_in(
        2,
        [
            (one(chapters=("copy",)), 1),
            (one(chapters=("copy",), equivalent="it is the reference as it is"), 0),
            (one(chapters=("growing",), adapter=controls.Losing), 0),
            (one(chapters=("growing",), adapter=controls.Losing, equivalent="it is said to be none"), 1),
            (one(chapters=("copy",), bug_class="control", is_control=True), 0),
            (one(chapters=("growing",), bug_class="control", is_control=True, adapter=controls.Losing), 1),
        ],
    ),
    ids=["survives", "is none", "is found", "is found though argued", "lives", "fails"],
)
def test_the_command_fails_by_what_comes_of_a_mutant(
    mutant: Mutant, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(all_mutants.KINDS, "reference", lambda: iter([mutant]))
    assert run(capsys, "--kind", "reference", "--argued")[0] == status


def test_of_faults_and_correct_controls_one_in_so_many_and_all_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def listed(*more: str) -> list[str]:
        assert cli.main(["mutants", "--kind", "fakes", "--kind", "reference", "--list", *more]) == 0
        return capsys.readouterr().out.splitlines()

    every, fakes = listed(), len(list(all_mutants.KINDS["fakes"]()))
    assert listed("--every", "7") == every[:fakes] + every[fakes::7]
    right = [m.id for m in all_mutants.KINDS["controls"]() if m.is_control]
    wrong = [m.id for m in all_mutants.KINDS["controls"]() if not m.is_control]
    sample = [line.partition(":")[0] for line in listed("--kind", "controls", "--every", "7")]
    assert [i for i in sample if i in right] == right[::7] and {*sample} >= {*wrong} and wrong and right


def test_that_nothing_matches_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mutants", "--match", "no such mutant"]) == 2
    assert "no mutant matches" in capsys.readouterr().err


CASES: list[tuple[dict[str, Any], bool, bool]] = [
    ({}, False, True),
    ({}, True, False),
    ({"equivalent": "why"}, False, False),
    ({"equivalent": "why"}, True, True),
    ({"bug_class": "control", "is_control": True}, False, False),
    ({"bug_class": "control", "is_control": True}, True, True),
    ({"bug_class": "control"}, False, True),
    ({"bug_class": "control"}, True, False),
]
"""What is known of a mutant, whether it was found, and whether that is wrong."""


def cases() -> Iterator[tuple[Mutant, HuntResult]]:
    """Each mutant, and what came of it."""
    kill = Kill("examples", ("GROW-2",), Trace("growing", Config()), "as said")
    for i, (known, killed, _) in enumerate(CASES):
        shortest = kill if killed else None
        yield one(id=str(i), **known), HuntResult(str(i), {"examples": shortest}, shortest)


def test_the_matrix_names_what_must_not_be() -> None:
    mutants, found = zip(*cases(), strict=True)
    made = matrix.made(mutants, found[::-1], 1.0)
    assert [m.id for m in made.mutants] == [m.id for m in mutants]
    assert matrix.wrong(made) == [str(i) for i, (_, _, is_wrong) in enumerate(CASES) if is_wrong]


@pytest.mark.parametrize(
    ("of", "was", "words"),
    [
        ("Ring.rewind", "no such text", "was: 'no such text' stands 0 times in Ring.rewind, not once"),
        ("Ring._write", "pass", "of: the reference has no method Ring._write; its classes are "),
        ("Wheel.rewind", "pass", "of: the reference has no method Wheel.rewind"),
    ],
)
def test_a_bug_that_cannot_be_planted_is_not_called_found(
    of: str, was: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each was counted as found: its cache cannot be made, as if it died."""
    row = one(adapter=Patch("Nowhere", of, was, "pass").made)
    monkeypatch.setitem(all_mutants.KINDS, "catalogue", partial(iter, [row]))
    monkeypatch.setitem(known_bugs(), row.id, row)
    assert cli.main(["mutants", "--kind", "catalogue"]) == 2
    assert words in capsys.readouterr().err


def test_faults_are_planted_in_every_module_or_the_table_says_why_not() -> None:
    """A chapter that comes with modules of its own is forgotten here first."""
    exempt = table("kvworkshop.systematic", "targets")["exempt"]
    there = {name for package in ("kvref", "kvgpu") for name in _modules(package)}
    spared = {name for name in there for each in exempt if name == each or name.startswith(f"{each}.")}
    targets = {target.module for target in modules.TARGETS.values()}
    assert sorted(there - spared - targets) == [] and sorted(targets & spared) == ["kvgpu.runtimes.capture"]
    assert [each for each in exempt if not any(f"{name}.".startswith(f"{each}.") for name in there)] == []


def _modules(package: str) -> Iterator[str]:
    """The names of all modules in a package."""
    root = Path(str(files(package)))
    for file in sorted(root.rglob("*.py")):
        if file.name != "__init__.py":
            yield ".".join([package, *file.relative_to(root).with_suffix("").parts])
