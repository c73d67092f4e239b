"""The difference of two records: each sort of change is planted, and told as what it is."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import to_builtins

from kvconform import cli
from kvreports import json_file
from kvreports.difference.compare import compare
from kvreports.difference.judged import of_run, of_server
from kvspec.records.difference import Difference
from kvspec.records.run import Record
from kvspec.records.serving import ServingRecord
from reports.drawing.test_drawings import dead_steps, ring_steps
from support.samples.record_samples import TEXTS, changed, clause, failing, failure, passing, record

ROOT = Path(__file__).parents[2]
SERVED = ROOT / "reports/published/serving"
BROKEN = "slot 1 holds row b; expected row f"


def of(before: Record, now: Record, withdrawn: dict[str, str] | None = None) -> Difference:
    return compare(of_run(before), of_run(now), withdrawn or {})


def groups(difference: Difference) -> dict[str, str]:
    """The group of each clause that changed."""
    return {change.clause: change.group for change in difference.changes}


def with_verdicts(failures: list[Any] | None = None, /, **verdicts: str) -> Record:
    """A record in which each clause passes but these: `RING_5="FAIL"`; a verdict of "" leaves it out."""
    said = {name.replace("_", "-"): verdict for name, verdict in verdicts.items()}
    clauses = [clause(i, said.get(i, "PASS"), "known: one row" * (said.get(i) == "XFAIL")) for i in TEXTS]
    return record("engine", [c for c in clauses if c["verdict"]], failures)


def wrong(clauses: str, cause: str = "wrong row", **more: Any) -> Any:
    return failure("FAIL", clauses, ring_steps(), BROKEN, cause=cause, **more)


def test_two_equal_records_have_no_difference() -> None:
    found = of(passing(), passing())
    assert (found.changes, found.notes, found.unchanged, found.exit_status) == ([], [], len(TEXTS), 0)
    same = of(failing(), failing())
    assert "broke anew" not in groups(same).values() and set(groups(same).values()) == {"still broken"}


@pytest.mark.parametrize(
    ("before", "now", "group", "status"),
    [
        ("PASS", "FAIL", "broke anew", 1),
        ("PARTLY_OBSERVED", "CRASH", "broke anew", 1),
        ("BY_ADAPTER", "HANG", "broke anew", 1),
        ("XPASS", "FAIL", "broke anew", 1),
        ("PASS", "XFAIL", "broke anew", 1),
        ("XFAIL", "FAIL", "broke anew", 1),
        ("FAIL", "XFAIL", "still broken", 0),
        ("FAIL", "FAIL", "still broken", 0),
        ("FAIL", "PASS", "mended", 0),
        ("XFAIL", "XPASS", "mended", 0),
        ("OOM", "PARTLY_OBSERVED", "mended", 0),
        ("PASS", "NOT_CLAIMED", "no longer judged", 0),
        ("FAIL", "NOT_RUN", "no longer judged", 0),
        ("PASS", "HARNESS_ERROR", "no longer judged", 0),
        ("NOT_CLAIMED", "FAIL", "newly judged", 0),
        ("NOT_RUN", "PASS", "newly judged", 0),
        ("PASS", "PARTLY_OBSERVED", "seen less of", 0),
        ("PARTLY_OBSERVED", "PASS", None, 0),
        ("NOT_CLAIMED", "NOT_RUN", None, 0),
    ],
)
def test_one_clause_changes(before: str, now: str, group: str | None, status: int) -> None:
    found = of(with_verdicts(RING_5=before), with_verdicts(RING_5=now))
    assert (groups(found), found.exit_status) == ({"RING-5": group} if group else {}, status)
    assert [(c.before, c.now) for c in found.changes] == [(before, now)] * bool(group)


def test_a_clause_that_was_broken_and_breaks_in_another_way_broke_anew() -> None:
    before = with_verdicts([wrong("RING-5", "wrong length")], RING_5="FAIL")
    now = with_verdicts([wrong("RING-5", "wrong length"), wrong("RING-5")], RING_5="FAIL")
    assert (groups(of(before, now)), of(before, now).exit_status) == ({"RING-5": "broke anew"}, 1)
    assert groups(of(now, before)) == {"RING-5": "still broken"}


def test_the_trace_that_shows_it_is_told_and_drawn() -> None:
    now = with_verdicts([wrong("RING-5 RING-1")], RING_5="FAIL", RING_1="FAIL")
    (one, other) = of(passing(), now).changes
    assert {one.clause, other.clause} == {"RING-1", "RING-5"} and one.why == BROKEN
    assert one.trace == now.failures[0].words and any("[" in line for line in one.drawing)


def test_what_breaks_no_selected_clause_broke_anew_too() -> None:
    nameless = [failure("CRASH", "", dead_steps(), "the adapter died: signal 11")]
    died, outside = with_verdicts(nameless), with_verdicts([wrong("GROW-14")])
    dishonest = changed(passing(), problems=["adapter: it takes rows beyond its limit", "harness: slow"])
    for now, clause_ in ((died, ""), (outside, "GROW-14"), (dishonest, "")):
        found = of(passing(), now)
        assert (groups(found), found.exit_status) == ({clause_: "broke anew"}, 1)
        assert groups(of(now, passing())) == {clause_: "mended"}
        assert of(now, now).exit_status == 0


def test_a_clause_that_the_older_spec_lacked_is_new_in_the_spec_only_where_its_chapter_was_judged() -> None:
    before = with_verdicts(RING_5="")
    assert groups(of(before, with_verdicts(RING_5="FAIL"))) == {"RING-5": "new in the spec"}
    for selection in ({"chapters": ["growing"], "clauses": []}, {"chapters": ["ring"], "clauses": ["RING-1"]}):
        part = changed(before, selection=selection)
        found = of(part, passing())
        assert groups(found) == {"RING-5": "newly judged"} and any("chapters: " in n for n in found.notes)


def test_a_withdrawn_clause_is_no_longer_judged_and_says_why() -> None:
    found = of(passing(), with_verdicts(RING_5=""), {"RING-5": "split into RING-7 and RING-10"})
    assert (groups(found), found.changes[0].why) == (
        {"RING-5": "no longer judged"},
        "withdrawn: split into RING-7 and RING-10",
    )
    unclaimed = with_verdicts(RING_5="NOT_CLAIMED")
    assert groups(of(unclaimed, with_verdicts(RING_5=""), {"RING-5": "split"})) == {}


def test_a_newer_record_that_is_no_answer_ends_with_3() -> None:
    for now in (
        changed(passing(), partial=True, partial_reason="interrupted"),
        changed(passing(), exit_status=3),
        with_verdicts(**dict.fromkeys((i.replace("-", "_") for i in TEXTS), "NOT_CLAIMED")),
    ):
        assert of(passing(), now).exit_status == 3
    broken = changed(with_verdicts(RING_5="FAIL"), partial=True)
    assert of(passing(), broken).exit_status == 1


def test_it_notes_what_makes_records_hard_to_compare() -> None:
    other = changed(
        passing("another"),
        spec={"version": "0.2", "hash": "f" * 16},
        selection={"chapters": ["ring"], "clauses": [], "traces": 2, "seed": 20250314, "left out": "covers"},
    )
    told = "\n".join(of(passing("engine"), other).notes)
    for words in (
        "two engines: engine and another",
        "two versions of the spec",
        "traces: 200; now 2",
        "a quick run",
    ):
        assert words in told
    assert "seed" not in told


def written(folder: Path, **records: Any) -> list[str]:
    for name, made in records.items():
        (folder / f"{name}.json").write_text(json_file.dumps(made))
    return [str(folder / f"{name}.json") for name in records]


def test_the_command_prints_it_in_three_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = with_verdicts([wrong("RING-5")], RING_5="FAIL", GROW_4="XFAIL")
    names = written(tmp_path, old=with_verdicts(GROW_4="XFAIL"), new=now)
    assert cli.main(["diff", *names]) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[-1].endswith("hold as before.") and "Something broke anew" in text
    assert "Broke anew: 1 clause\n  RING-5: PASS before, FAIL now\n" in text and f"    {BROKEN}\n" in text
    assert cli.main(["diff", *names, "--format", "markdown", "--spec", "chapters"]) == 1
    assert "**[RING-5](chapters/ring.md#RING-5)**: PASS before, FAIL now" in capsys.readouterr().out
    assert cli.main(["diff", *names, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    schema = json.loads(resources.files("kvspec").joinpath("schemas/difference.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(document)
    assert json_file.from_json(document, Difference).of("broke anew")[0].clause == "RING-5"
    assert cli.main(["diff", *reversed(names)]) == 0
    assert "Mended: 1 clause\n  RING-5: FAIL before, PASS now" in capsys.readouterr().out


def test_a_record_that_commands_a_terminal_is_shown_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = with_verdicts([wrong("RING-5", words="ring window=4: append 1 \x1b[2J")], RING_5="FAIL")
    cli.main(["diff", *written(tmp_path, old=passing("\x1b]0;mine"), new=evil)])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "not a run record"),
        ('{"kvrecord": 2, "kvrecord": 2}', "stands twice"),
        ('{"kvrecord": 99}', "this kvconform reads version"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = written(tmp_path, good=passing())[0]
    (tmp_path / "bad.json").write_text(text)
    for names in ((good, str(tmp_path / "bad.json")), (str(tmp_path / "bad.json"), good)):
        assert cli.main(["diff", *names]) == 2
        assert words in capsys.readouterr().err


def served(**more: Any) -> ServingRecord:
    whole = json_file.load(SERVED / "llama-server-window" / "record.json", ServingRecord)
    return json_file.from_json(to_builtins(whole) | more, ServingRecord)


def test_serving_records_are_compared_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = served()
    assert broken.failures
    clauses = [{**to_builtins(c), "verdict": "PASS"} for c in broken.clauses]
    sound = served(failures=[], clauses=clauses, exit_status=0)
    found = compare(of_server(sound), of_server(broken), {})
    anew = found.of("broke anew")
    assert found.exit_status == 1 and {c.clause for c in anew} >= {f.clause for f in broken.failures}
    assert anew[0].trace and compare(of_server(broken), of_server(sound), {}).of("mended")
    names = written(tmp_path, run=passing(), serving=broken)
    assert cli.main(["diff", *names]) == 2 and "cannot be compared" in capsys.readouterr().err
