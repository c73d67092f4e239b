"""The board of released engines: the published one is what the command makes, and every failure on it is filed."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from kvconform.cli import main
from kvconform.commands.board import NOT_FILED, board
from kvconform.runner.verdict import known
from kvreports import json_file
from kvreports.board import badge as badges
from kvreports.board import html, markdown
from kvreports.board.engines import ADAPTERS, SORTS, Board, Deviation, Engine
from kvreports.board.trend import trend
from kvspec.records.run import Failure, Record
from support.samples.record_samples import failing, passing

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports" / "published" / "engines"
RECORDS = sorted([*PUBLISHED.glob("*/record.json"), *PUBLISHED.parent.glob("serving/*/record.json")])
RECORDS += sorted([*PUBLISHED.glob("versions/*.json"), *PUBLISHED.glob("asked/*.json")])
KNOWN = ROOT / "reports" / "deviations" / "kvconform.toml"
SPEC = "../../../spec/kvspec/chapters"
"""Where the chapters are, seen from the published board."""


@cache
def published() -> Board:
    """The board of all published records: read once."""
    return board(RECORDS, KNOWN, PUBLISHED)


def test_the_published_board_is_what_the_records_and_the_known_deviations_make(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "published" / "engines"
    for path in [*RECORDS, *KNOWN.parent.rglob("*.*")]:
        beside = tmp_path / path.relative_to(ROOT)
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(path.read_bytes())
    records = [str(tmp_path / p.relative_to(ROOT)) for p in RECORDS]
    known_file = str(tmp_path / KNOWN.relative_to(ROOT))
    assert main(["board", *records, "--known", known_file, "--spec", SPEC, "--out", str(folder)]) == 0
    written = (folder / "README.md").read_text(encoding="utf-8")
    assert written == (PUBLISHED / "README.md").read_text(encoding="utf-8"), "nox -s board writes it again"
    over_time = (folder / "VERSIONS.md").read_text(encoding="utf-8")
    assert over_time == (PUBLISHED / "VERSIONS.md").read_text(encoding="utf-8"), "nox -s board writes it again"
    assert "Content-Security-Policy" in (folder / "board.html").read_text(encoding="utf-8")


def test_every_failure_of_a_published_record_is_filed_with_its_script() -> None:
    found = published()
    deviations = [d for e in found.engines for d in e.deviations]
    assert [d.failure.words for d in deviations if d.sort == NOT_FILED.sort] == []
    assert [
        d.failure.words for d in deviations if d.sort in ("wrong result", "broken promise") and not d.draft
    ] == []


def test_every_failure_of_a_whole_engine_is_filed_with_its_script() -> None:
    bugs = [(s.form, bug) for s in published().served for bug in s.bugs]
    assert [(form, bug.failures[0].history) for form, bug in bugs if bug.sort == NOT_FILED.sort] == []
    assert [
        form for form, bug in bugs if bug.sort == "wrong result" and not ((bug.script and bug.draft) or bug.link)
    ] == []


def test_the_gravest_deviations_of_an_engine_come_first() -> None:
    sorts = [[d.sort for d in e.deviations] for e in published().engines]
    assert all(found == sorted(found, key=SORTS.index) for found in sorts)
    assert any(found[0] == "wrong result" and len(set(found)) > 2 for found in sorts if found)


def deviation(sort: str, bug: str, *clauses: str) -> Deviation:
    """A failure of these clauses that is known."""
    failure = replace(failing().failures[0], clauses=list(clauses))
    return Deviation(failure, sort, f"why {bug}", bug=bug)


def test_a_bug_is_one_row_whatever_the_clauses_that_it_breaks() -> None:
    shown = [deviation("wrong result", "mask", "RING-1", "MASK-8"), deviation("unchecked", "sizes", "CACHE-3")]
    shown += [deviation("wrong result", "mask", "RING-3"), deviation("wrong result", "rows", "RING-1")]
    found = Engine(passing(), "r.json", shown)
    assert [(b.first.sort, b.name, b.clauses) for b in found.bugs] == [
        ("wrong result", "mask", ["RING-1", "MASK-8", "RING-3"]),
        ("wrong result", "rows", ["RING-1"]),
        ("unchecked", "sizes", ["CACHE-3"]),
    ]
    text = markdown.render(Board([found], []))
    assert text.count("**Wrong result** in ") == 2 and "Bugs by sort: 2 wrong results, 1 unchecked" in text


def test_a_bug_says_each_way_in_which_it_shows() -> None:
    shown = [deviation("unchecked", "sizes", "CACHE-3"), deviation("unchecked", "sizes", "RING-1")]
    shown.append(dataclasses.replace(deviation("unchecked", "sizes", "RING-3"), reason="another way"))
    engine = Engine(passing(), "r.json", shown)
    assert [bug.reason for bug in engine.bugs] == ["why sizes; another way"]
    assert "CACHE-3, RING-1, RING-3: why sizes; another way" in markdown.render(Board([engine], []))


def test_a_deviation_that_one_script_shows_is_charged_once_whatever_its_models() -> None:
    """Caches of one layer and of several each have a model of one bug; a script may need several models."""
    found = published()
    for engine in found.engines:
        scripts = [(bug.first.sort, bug.first.script) for bug in engine.bugs if bug.first.script]
        assert len(scripts) == len(set(scripts)), engine.name
    wrong = {d.script for c in found.caches for d in c.newest.deviations if d.sort == "wrong result"}
    assert f" {len(wrong)} wrong results, " in found.headline and len(wrong) > 5


def filed(name: str) -> str:
    return (
        f'[[known]]\nclause = "RING-1"\nreason = "{name}"\nmodel = "m/{name}"\nsort = "{name}"\nscript = "{name}"\n'
    )


def board_of(failures: list[Failure], folder: Path, *names: str) -> list[tuple[str, list[str]]]:
    """The sort and the clauses of each bug that a board has of a record with these failures."""
    record, file = folder / "record.json", folder / "known.toml"
    record.write_bytes(json.encode(replace(failing(), failures=failures)))
    file.write_text("".join(map(filed, names)), encoding="utf-8")
    return [(bug.first.sort, bug.clauses) for bug in board([record], file, folder).engines[0].bugs]


def test_a_failure_that_needs_two_bugs_is_charged_to_both(tmp_path: Path) -> None:
    """A record joins the reasons of models that explain a failure only together."""
    both = replace(failing().failures[0], clauses=["RING-1"], known={"RING-1": "unchecked; choice"})
    assert board_of([both], tmp_path, "unchecked", "choice") == [("unchecked", ["RING-1"]), ("choice", ["RING-1"])]


def test_what_is_not_filed_is_as_many_bugs_as_the_run_tells_apart(tmp_path: Path) -> None:
    first = replace(failing().failures[0], clauses=["RING-1", "RING-3"], known={}, diagnosis=[])
    same, other = replace(first, clauses=["RING-1"]), replace(first, cause="wrong length")
    found = board_of([first, same, other], tmp_path)
    assert found == [(NOT_FILED.sort, ["RING-1", "RING-3"])] * 2


def test_the_gravest_come_first_and_only_wrong_results_are_red() -> None:
    worse, better = (
        deviation("wrong result", "mask", "RING-1"),
        [deviation("unchecked", b, "CACHE-3") for b in "abc"],
    )
    many = Engine(replace(passing(), adapter=passing().adapter | {"name": "many"}), "m", better)
    one = Engine(replace(passing(), adapter=passing().adapter | {"name": "one"}), "o", [worse])
    found = Board([many, one], [])
    assert [c.name for c in found.caches] == ["one", "many"] and found.sorts == list(SORTS[1:-1])
    rows = [row for row in html.render(found).split("<tr") if 'scope="row"' in row]
    assert ['<td class="bad">1</td>' in row for row in rows] == [True, False] and "<td>3</td>" in rows[1]


def test_a_page_has_one_card_a_bug_with_all_its_clauses_and_traces() -> None:
    shown = [deviation("wrong result", "mask", "RING-1"), deviation("wrong result", "mask", "RING-3")]
    page = html.render(Board([Engine(passing(), "r", [*shown, deviation("unchecked", "sizes", "CACHE-3")])], []))
    assert page.count('<article class="deviation">') == 2
    assert "<summary>Wrong result in RING-1, RING-3: why mask</summary>" in page
    assert page.count("Other traces that show it:") == 1 and "<li>RING-3 <code>" in page


def test_ours_stand_in_a_table_of_their_own_and_are_not_counted() -> None:
    theirs = Engine(replace(passing(), adapter=passing().adapter | {"name": "theirs"}), "t", [])
    mine = Engine(replace(passing(), adapter=passing().adapter | {"name": "reference"}), "r", [], ours=True)
    found = Board([mine, theirs], [])
    assert found.headline.startswith("1 cache was judged")
    assert ([c.name for c in found.caches], [c.name for c in found.ours]) == (["theirs"], ["reference"])
    before, after = markdown.render(found).split("## Ours")
    assert "[theirs](t)" in before and "[reference](r)" in after and "[reference](r)" not in before
    before, after = html.render(found).split('id="ours"')
    assert ">theirs<" in before and ">reference<" in after
    assert "## Ours" not in markdown.render(Board([theirs], []))


def test_what_the_adapter_alone_does_is_no_bug_of_the_engine() -> None:
    found = Board([Engine(passing(), "r", [deviation(ADAPTERS, "step", "CACHE-3")])], [])
    assert found.sorts == list(SORTS[1:]) and "1 cache was judged, 1 of them without a bug" in found.headline


def test_a_choice_is_no_bug_and_is_told_apart() -> None:
    both = [deviation("choice", "types", "CACHE-2"), deviation("unchecked", "sizes", "CACHE-3")]
    found = Board([Engine(passing(), "r", both)], [])
    assert found.headline.endswith("0 of them without a bug. Bugs by sort: 1 unchecked; no bugs: 1 choice")
    found = Board([Engine(passing(), "r", both[:1])], [])
    assert found.headline.endswith("1 of them without a bug. Bugs by sort: none; no bugs: 1 choice")


def test_a_quick_run_is_told() -> None:
    part = replace(passing(), selection={"left out": "most traces"})
    told = [markdown.render(Board([Engine(r, "r", [])], [])).count(", quick run |") for r in (part, passing())]
    assert told == [1, 0]


def test_limits_are_told_in_words() -> None:
    limits = {"append": None, "batch": 8, "heads": 64, "window": {"least": 2}, "dims": {"equal": True}}
    record = passing()
    record.adapter = {**record.adapter, "limits": limits}
    words = "at most 8 sequences, at most 64 heads, windows from 2, keys and values of one width"
    assert Engine(record, "", []).dialects.endswith(words)


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*/record.json")), ids=lambda p: p.parent.name)
def test_all_clauses_of_every_failure_are_filed(path: Path) -> None:
    record = json_file.load(path, Record)
    filed = {k.because for k in known.read(KNOWN) if k.names(path.parent.name)}
    explained = [f.expected and all(_joined(why, filed) for why in f.known.values()) for f in record.failures]
    assert [f.words for f, one in zip(record.failures, explained, strict=True) if not one] == []


def _joined(why: str, filed: set[str]) -> bool:
    """Whether a reason is one that is filed, or several of them: a failure may need all of these."""
    for one in sorted(filed, key=len, reverse=True):
        why = why.replace(one, "")
    return not why.strip("; ")


def test_every_known_deviation_has_a_script_that_is_there() -> None:
    named = {k.script for k in known.read(KNOWN) if k.sort != ADAPTERS}
    assert {n for n in named if not (KNOWN.parent / f"{n}.py").is_file()} == set()


def test_a_known_deviation_is_of_one_adapter_of_several_or_of_any() -> None:
    of = [known.KnownDeviation("GROW-1", "why", adapter=a) for a in ("a", ("a", "b"), "")]
    assert [[k.names(n) for n in "abc"] for k in of] == [[True, False, False], [True, True, False], [True] * 3]


def test_what_is_not_filed_is_said(tmp_path: Path) -> None:
    for name, record in (("good", passing()), ("bad", failing())):
        named = replace(record, adapter=record.adapter | {"name": name})
        json_file.write(tmp_path / f"{name}.json", json_file.dumps(named))
    empty = tmp_path / "none.toml"
    empty.write_text('[[unjudged]]\nengine = "other"\nreason = "it wants a GPU"\n')
    records = [str(tmp_path / f"{name}.json") for name in ("good", "bad")]
    assert main(["board", *records, "--known", str(empty), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "README.md").read_text()
    assert "not filed" in text and "| other" in text and "1 of them without a bug" in text


def test_a_record_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", str(tmp_path / "none.json"), "--out", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def engine(record: Record, version: str, day: int) -> Engine:
    """A record of an adapter as one of its versions left it."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    about = {**record.adapter, "name": "a/b", "version": version}
    return Engine(
        Record(**fields | {"adapter": about, "started": f"2026-01-{day:02}T00:00:00+00:00"}), "r.json", []
    )


TWO = Board([engine(failing(), "1.0", 1), engine(passing(), "1.1", 2)], [])


def test_records_of_one_cache_stand_together_with_their_trend() -> None:
    (cache,) = TWO.caches
    assert [e.version for e in cache.engines] == ["1.0", "1.1"] and cache.newest.version == "1.1"
    drawn = trend(cache)
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn)]
    assert TWO.headline.startswith("1 cache was judged")
    assert len(heights) == 2 and all(a > b for a, b in pairwise(heights)), "what holds rises"
    assert cache.trend in drawn and re.fullmatch(r"\d+ of \d+ \(1\.0\), \d+ of \d+ \(1\.1\)", cache.trend)


def test_the_page_has_every_version_and_leads_from_each_cell_to_its_clauses() -> None:
    page = html.render(TWO)
    assert 'data-versions="a/b"' in page and page.count('<svg class="trend"') == 2
    cells = re.findall(r'<td class="cell-of (\w+)"><a href="#([\w-]+)">', page)
    assert {kind for kind, _ in cells} == {"bad", "good"}
    assert cells and all(f'id="{to}"' in page for _, to in cells)
    assert {to.rpartition("-")[0] for _, to in cells} == {"a-b-1", "a-b-2"}


def test_a_badge_says_what_holds_and_is_coloured_by_the_worst() -> None:
    bad, good = (badges.badge(e) for e in TWO.engines)
    claimed, held, *_ = TWO.engines[1].numbers
    assert f"{held} of {claimed} clauses</text>" in good and 'aria-label="a/b 1.1, KV cache:' in good
    assert badges.COLOURS["good"] in good and badges.COLOURS["bad"] in bad
    hostile = badges.drawn("a", "<script>", "#000", '"><x')
    assert "<script>" not in hostile and '"><x' not in hostile


def test_a_badge_of_each_record_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    name = "mlx-rotating"
    record = str(PUBLISHED / name / "record.json")
    folder = tmp_path / "badges"
    assert main(["board", record, "--known", str(KNOWN), "--out", str(tmp_path), "--badges", str(folder)]) == 0
    assert badges.COLOURS["known"] in (folder / f"{name}.svg").read_text(encoding="utf-8")
