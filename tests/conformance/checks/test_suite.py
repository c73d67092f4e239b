"""The suite: what it consists of, what a run selects of it, and what a sample of its covers is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.checks import covers
from kvconform.checks.check import Check
from kvconform.checks.suite import selected, suite
from kvconform.generate import concerning, frozen_covers, strategies
from kvconform.generate.amounts import CLAUSE_COVERS
from kvconform.laws.registry import LAWS
from kvconform.runner.settings import Settings
from kvspec.contract import CHAPTERS, Description, description
from kvspec.errors import BadInput
from kvspec.reading.clauses import examples_of, index
from kvspec.registry import RECORDS
from support.fakes import adapters as fake_adapters


def explored(chapter: str) -> list[str]:
    """The names of what a chapter's strategies explore; none for a chapter without strategies."""
    if "EXPLORATIONS" not in RECORDS[chapter].rooms.get("strategies", ()):
        return []
    return [each.name for each in import_module(f"{strategies.__name__}.{chapter}").EXPLORATIONS]


def of(source: str, chapter: str) -> list[str]:
    """The names of a chapter's checks of one source."""
    return [
        i.partition(f"/{source}/")[2] for i, c in suite().items() if c.chapter == chapter and f"/{source}/" in i
    ]


def test_ids_are_unique_and_name_no_path() -> None:
    assert [check.id for check in suite().values()] == list(suite())
    for check in suite().values():
        assert re.fullmatch(
            r"honesty|system/explore|[a-z]+/(example|moved|dialect|geometry|walk|cover|law|explore|large)/[\w.,:<=/-]+",
            check.id,
        )
        assert check.id.partition("/")[0] == check.chapter
        assert ".py" not in check.id and "::" not in check.id and "kvconform" not in check.id


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_source_gives_a_chapter_all_its_checks(chapter: str) -> None:
    assert of("example", chapter) == [e.id for e in examples_of(chapter)]
    assert len(of("cover", chapter)) == len(frozen_covers.load(chapter))
    stated = [law for law in LAWS if law.chapter == chapter]
    assert of("law", chapter) == [f"{law.clause}/{law.kind}" for law in stated]
    assert of("explore", chapter) == explored(chapter)


def test_nothing_is_lost_of_the_suite_that_was_tests() -> None:
    """As many checks of each source as there were pytest tests when the suite became a list."""
    sources = Counter(check.id.split("/")[1] for check in suite().values() if "/" in check.id)
    assert sources["cover"] >= 62 and sources["law"] >= 42 and sources["explore"] >= 33 and len(suite()) >= 824


def test_examples_come_first_then_one_chapter_after_another() -> None:
    checks = list(suite().values())
    first = [c for c in checks if "/example/" in c.id]
    assert checks[: len(first)] == first and checks[-1].id == "system/explore"
    for some in (first, [c for c in checks[len(first) :] if c.chapter in CHAPTERS]):
        assert [CHAPTERS.index(c.chapter) for c in some] == sorted(CHAPTERS.index(c.chapter) for c in some)


def claims(adapter: type[Reference]) -> Description:
    return description(adapter().describe())


def ids(adapter: type[Reference], **settings: Any) -> list[str]:
    return [check.id for check in selected(Settings("any", **settings), claims(adapter))]


def test_all_is_selected_for_an_adapter_that_claims_all() -> None:
    assert ids(Reference) == list(suite())


def test_what_is_not_claimed_is_not_selected() -> None:
    adapter = claims(fake_adapters.Fake)
    chosen: list[Check] = selected(Settings("any"), adapter)
    assert {c.chapter for c in chosen} >= {"growing", "honesty", "system"}
    assert all(c.needs <= set(adapter.chapters) for c in chosen) and len(chosen) < len(suite())


@pytest.mark.parametrize("few", [{"quick": True}, {"clauses": ("CACHE-11",)}])
def test_large_traces_are_for_runs_of_whole_chapters(few: dict[str, Any]) -> None:
    assert any("/large/" in check for check in ids(Reference, chapters=("ring",)))
    assert not any("/large/" in check for check in ids(Reference, **few))


def test_a_clause_selects_its_own_examples_and_laws_and_what_its_chapter_has_beside_them() -> None:
    chosen, clause = ids(Reference, clauses=("CACHE-11",)), index()["CACHE-11"]
    assert [i for i in chosen if "/example/" in i] == [f"{e.trace.kind}/example/{e.id}" for e in clause.examples]
    assert [i for i in chosen if "/law/" in i] == [f"{kind}/law/CACHE-11/{kind}" for kind in clause.applies]
    assert {i.partition("/")[0] for i in chosen} == {"growing", "ring", "sink", "layers", "honesty"}
    assert [i for i in chosen if "ring/cover/" in i] == [f"ring/cover/{name}" for name in of("cover", "ring")]


def test_a_chapter_selects_no_other() -> None:
    assert {i.partition("/")[0] for i in ids(Reference, chapters=("mask", "copy"))} == {"mask", "copy", "honesty"}


@pytest.mark.parametrize("settings", [{"chapters": ("spiral",)}, {"clauses": ("RING-99",)}])
def test_what_there_is_not_cannot_be_selected(settings: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(BadInput):
        ids(Reference, **settings)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_sample_of_covers_is_small_and_takes_some_of_each(chapter: str) -> None:
    frozen = frozen_covers.load(chapter)
    share = CLAUSE_COVERS / max(CLAUSE_COVERS, sum(len(cover.lines) for cover in frozen))
    sampled = [covers.sampled(cover, share) for cover in frozen]
    assert sum(len(cover.lines) for cover in sampled) <= CLAUSE_COVERS + len(frozen)
    for whole, part in zip(frozen, sampled, strict=True):
        assert part.lines and set(part.lines) <= set(whole.lines) and part == covers.sampled(whole, share)
        assert [whole.lines.index(line) for line in part.lines] == sorted(map(whole.lines.index, part.lines))


@pytest.mark.parametrize("clause", ["RING-10", "PAGE-28", "GROW-15", "CACHE-7"])
def test_a_run_on_a_clause_judges_the_traces_that_exercise_it(clause: str) -> None:
    kept = 0
    for whole in (each for chapter in index()[clause].chapters for each in frozen_covers.load(chapter)):
        cites = {line: {c for o in frozen.outcomes for c in o.cites} for line, frozen in whole.frozen.items()}
        lines = concerning.cover(whole, frozenset([clause])).lines
        assert lines == tuple(line for line in whole.lines if clause in cites[line])
        kept += len(lines)
    assert kept


@pytest.mark.parametrize("clause", ["MEM-6", "RESIDENCY-2", "CACHE-9"])
def test_of_a_clause_that_is_judged_beside_its_steps_no_trace_is_left_out(clause: str) -> None:
    covers = [each for chapter in index()[clause].chapters for each in frozen_covers.load(chapter)]
    assert covers and all(concerning.cover(each, frozenset([clause])) == each for each in covers)


LINES = """
import sys
from pathlib import Path
def ours():
    return [m for m in list(sys.modules.values()) if m.__name__[:2] == "kv" and getattr(m, "__file__", None)]
def lines():
    return sum(len(Path(m.__file__).read_text().splitlines()) for m in ours())
"""
"""Counts the lines of those of our modules that are read."""

IMPORTS = f"""{LINES}
import kvconform.commands.run
print(lines())
"""


def test_what_a_run_imports_is_a_part_of_the_house() -> None:
    said = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout
    assert int(said) <= MOST_LINES, said


MOST_LINES = 15_000
"""Lines that `kvconform run` imports before it knows what to judge."""

READS = """
import sys
import kvconform.commands.run
from kvconform.checks.suite import read_for
from kvconform.generate import frozen_covers
from kvconform.runner.settings import Settings
from kvspec.reading.clauses import index
list(read_for(Settings("reference", clauses=("RING-10",), cover_traces=1)))
read = [c.id for c in index().values() if "examples" in vars(c)]
ours = [m for m in sys.modules if m.startswith(("kvconform.laws.", "kvconform.generate.strategies."))]
print(read, frozen_covers.load.cache_info().currsize, len(ours), len([m for m in sys.modules if m[:2] == "kv"]))
"""
"""Prints what a run on a clause reads: clauses whose examples are parsed, chapters of covers, and our modules."""


def test_a_run_on_a_clause_reads_what_it_needs_alone() -> None:
    said = subprocess.run([sys.executable, "-c", READS], capture_output=True, text=True, check=True).stdout.split()
    assert said[:2] == ["['RING-10']", "1"]
    assert int(said[2]) <= 8 and int(said[3]) <= MOST_MODULES, said


MOST_MODULES = 132
"""Of our modules before anything is judged; no laws, no cache of the reference, and of strategies and list models
those of the clause's chapter."""

RUNS = f"""{LINES}
from kvconform.cli import main
assert main(["run", "reference", "--clause", "RING-10", "--processes", "1"]) == 0
print(lines(), *(m for m in sys.modules if m[:2] == "kv"))
"""
"""Judges a clause in this process, and prints the lines and names of our modules that it has read by then."""


def test_a_whole_run_on_a_clause_reads_what_it_needs_alone() -> None:
    said = subprocess.run([sys.executable, "-c", RUNS], capture_output=True, text=True, check=True).stdout
    lines, *read = said.splitlines()[-1].split()
    assert int(lines) <= MOST_LINES_OF_A_RUN, lines
    assert len(read) <= MOST_MODULES_OF_A_RUN, len(read)
    assert {m for m in read if m.startswith("kvreports.drawing")} == set(), "nothing failed, so nothing is drawn"
    assert [m for m in read if m.startswith("kvref")] == [], "the answers to all traces are frozen"


MOST_MODULES_OF_A_RUN = 150
"""Of our modules once a clause has passed: the worker's answers, the judge and the record; no oracle."""

MOST_LINES_OF_A_RUN = 17_000
"""Lines of these modules."""
