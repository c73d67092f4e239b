"""What a chapter's record lists must be there: a part that is missing is an error, never a shorter suite.

Each module that a record lists is taken away, and each name is renamed. Each law, each cover, each exploration and
each large size is dropped, one at a time. What the harness loads then must say which. So it must of a name of a
chapter or an operation that is misspelt where it chooses what is judged. At last a few of these are done to the
files of a copy of the tree, and a run must end with status 3.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from kvconform.bugs import known_bugs
from kvconform.checks import covers, exploration, large, suite
from kvconform.checks.check import Check
from kvconform.generate import frozen_covers, walks
from kvconform.generate import registry as strategies
from kvconform.generate.strategies import sample
from kvconform.generate.strategies.exploration import Exploration
from kvconform.laws import law
from kvconform.laws import registry as laws
from kvspec import costs, registry
from kvspec.errors import CannotRun, NotWhole
from kvspec.operations.table import caches_with
from kvspec.registry import KINDS, RECORDS
from kvspec.session import operations
from support import fakes

ROOT = Path(__file__).parents[1]
PACKAGES = ("spec", "reference", "adapters", "conformance", "reports")


def observed() -> list[str]:
    """The kinds, and the chapters whose records list what observes one."""
    return [c for c, record in RECORDS.items() if c in KINDS or "look" in record.rooms.get("operations", ())]


class Room(NamedTuple):
    """A package with a module for each chapter that needs one, and what loads what is in it."""

    package: str
    load: Callable[[], object]


ROOMS = {
    "operations": Room(
        "kvspec.session.operations",
        lambda: (
            [operations.of_chapter(chapter) for chapter in RECORDS],
            [operations.observes.__wrapped__(kind) for kind in observed()],
        ),
    ),
    "costs": Room("kvspec.costs", lambda: [costs.of_chapter.__wrapped__(chapter) for chapter in RECORDS]),
    "caches": Room(
        "kvref.caches", lambda: (registry.members("kvref.caches"), [*registry.ByKind("kvref.caches").values()])
    ),
    "list_model": Room("kvref.list_model", lambda: registry.objects("kvref.list_model", "model")),
    "strategies": Room(
        "kvconform.generate.strategies",
        lambda: (
            strategies.planned(),
            strategies.explorations(),
            registry.objects("kvconform.generate.strategies", "explored"),
            walks.given_by.__wrapped__(),
        ),
    ),
    "laws": Room("kvconform.laws", lambda: registry.modules("kvconform.laws")),
}

MODULES = [(room, chapter) for room in ROOMS for chapter, record in RECORDS.items() if room in record.rooms]
NAMES = [(room, chapter, name) for room, chapter in MODULES for name in RECORDS[chapter].rooms[room]]


def demand(load: Callable[[], object], *words: str) -> None:
    """Loading must fail, and say all of these words."""
    with pytest.raises(NotWhole) as raised:
        load()
    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize(("room", "chapter"), MODULES)
def test_a_module_that_a_record_lists_is_missed(monkeypatch: pytest.MonkeyPatch, room: str, chapter: str) -> None:
    module, find = f"{ROOMS[room].package}.{chapter}", registry.find_spec
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == module else find(name))
    demand(ROOMS[room].load, module, f"{chapter}.toml")


@pytest.mark.parametrize(("room", "chapter", "name"), NAMES)
def test_a_name_that_a_record_lists_is_missed(
    monkeypatch: pytest.MonkeyPatch, room: str, chapter: str, name: str
) -> None:
    module = import_module(f"{ROOMS[room].package}.{chapter}")
    monkeypatch.setitem(vars(module), f"{name}s", vars(module)[name])
    monkeypatch.delitem(vars(module), name)
    demand(ROOMS[room].load, module.__name__, repr(name), f"{chapter}.toml")


@pytest.mark.parametrize(("room", "chapter"), MODULES)
def test_a_module_that_no_record_lists_is_seen(monkeypatch: pytest.MonkeyPatch, room: str, chapter: str) -> None:
    record = RECORDS[chapter]
    rooms = {name: listed for name, listed in record.rooms.items() if name != room}
    monkeypatch.setitem(RECORDS, chapter, registry.convert({**_fields(record), "rooms": rooms}, type(record)))
    demand(ROOMS[room].load, f"{ROOMS[room].package}.{chapter}", f"{chapter}.toml")


@pytest.mark.parametrize(("room", "chapter", "name"), [case for case in NAMES if case[0] != "caches"])
def test_a_name_that_no_record_lists_is_seen(
    monkeypatch: pytest.MonkeyPatch, room: str, chapter: str, name: str
) -> None:
    """One that the registry looks up; the reference's classes are looked up by the record alone."""
    record = RECORDS[chapter]
    rooms = {**record.rooms, room: tuple(n for n in record.rooms[room] if n != name)}
    monkeypatch.setitem(RECORDS, chapter, registry.convert({**_fields(record), "rooms": rooms}, type(record)))
    demand(ROOMS[room].load, repr(name), f"{chapter}.toml")


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


@pytest.mark.parametrize("chapter", [chapter for chapter, record in RECORDS.items() if "real" in record.rooms])
@pytest.mark.parametrize("suffix", ["py", "toml"])
def test_a_file_of_real_bugs_is_missed(monkeypatch: pytest.MonkeyPatch, chapter: str, suffix: str) -> None:
    listed = tuple({"py", "toml"} ^ ({suffix} & {*RECORDS[chapter].rooms["real"]} or {"toml", "py"}))
    demand(lambda: list(known_bugs._planted("kvconform.bugs.real", chapter, listed)), chapter)


@pytest.mark.parametrize("dropped", [(x.clause, x.kind) for x in law.LAWS], ids=lambda pair: "-on-".join(pair))
def test_a_law_that_is_not_drawn_on_a_kind_is_missed(
    monkeypatch: pytest.MonkeyPatch, dropped: tuple[str, str]
) -> None:
    monkeypatch.setattr(law, "LAWS", [x for x in law.LAWS if (x.clause, x.kind) != dropped])
    demand(laws.demand_all, *dropped)


@pytest.mark.parametrize("chapter", list(strategies.planned()))
def test_a_cover_that_is_not_frozen_is_missed(monkeypatch: pytest.MonkeyPatch, chapter: str) -> None:
    load, first = frozen_covers.load, frozen_covers.load(chapter)[0].name
    for kept in ((), load(chapter)[1:]):
        monkeypatch.setattr(frozen_covers, "load", lambda name, kept=kept: kept if name == chapter else load(name))
        demand(lambda: list(covers.checks()), f"cover-{chapter}.json", *([repr(first)] if kept else []))


@pytest.mark.parametrize("chapter", list(strategies.planned()))
def test_a_cover_that_lost_traces_is_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chapter: str) -> None:
    file, cut = frozen_covers.path(chapter), tmp_path / "cover.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["covers"][-1]["traces"].pop()
    cut.write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.setattr(frozen_covers, "path", lambda _: cut)
    demand(lambda: frozen_covers.load.__wrapped__(chapter), "cover.json", str(document["traces"]))


SOURCES: dict[str, Any] = {"explore": exploration, "large": large}
CHECKS = [(source, chapter) for chapter, record in RECORDS.items() for source in record.checks]


@pytest.mark.parametrize(("source", "chapter"), CHECKS)
def test_a_check_that_a_record_lists_is_missed(monkeypatch: pytest.MonkeyPatch, source: str, chapter: str) -> None:
    there = list(SOURCES[source].checks((chapter,)))
    for dropped in there:
        monkeypatch.setattr(SOURCES[source], "checks", lambda _, of=dropped: (c for c in there if c != of))
        demand(lambda: suite.suite.__wrapped__((chapter,)), dropped.id, f"{chapter}.toml")


@pytest.mark.parametrize(("source", "chapter"), CHECKS)
def test_a_check_that_no_record_lists_is_seen(monkeypatch: pytest.MonkeyPatch, source: str, chapter: str) -> None:
    record = RECORDS[chapter]
    left = {**record.checks, source: record.checks[source][1:]}
    unlisted = min(KINDS) if (first := record.checks[source][0]) == "each kind" else first
    monkeypatch.setitem(RECORDS, chapter, registry.convert({**_fields(record), "checks": left}, type(record)))
    demand(lambda: suite.suite.__wrapped__((chapter,)), unlisted, f"{chapter}.toml")


def test_a_chapter_or_an_operation_that_is_misspelt_is_an_error() -> None:
    for needs, any_of in ((("ring", "maskk"), ()), (("ring",), (("growing", "maskk"),))):
        demand(
            lambda needs=needs, any_of=any_of: Check(
                "a/b", "a", frozenset(needs), print, "", (*map(frozenset, any_of),)
            ),
            "a/b",
            "'maskk'",
        )
    demand(lambda: Exploration("a", (), print, counted_as="maskk"), "'maskk'")
    demand(lambda: Exploration("a", (), print, over="maskk"), "'maskk'")
    demand(lambda: caches_with("restor"), "'restor'")


def test_a_law_is_drawn_on_a_kind_that_its_clause_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    record = RECORDS["ring"]
    kind = registry.convert({**_fields(record.kind), "general": ("CACHE-1",)}, type(record.kind))
    monkeypatch.setitem(registry._KINDS, "ring", kind)
    demand(laws.demand_all, "CACHE-10", "ring")


def test_a_strategy_that_gives_fewer_traces_than_were_asked_for_is_an_error() -> None:
    assert len(sample.some(st.integers(), 20, seed=0)) == 20
    with pytest.raises(sample.DrewFewer, match="drew 0 traces in 200 attempts; 20 were asked for"):
        sample.some(st.integers().filter(lambda _: False), 20, seed=0)


def test_a_hypothesis_that_leaves_out_traces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(sample.some(st.integers(3, 9), 200, seed=0)) == set(range(3, 10))
    monkeypatch.setattr(sample, "_there", lambda: "6.169.4")
    with pytest.raises(CannotRun, match=r"Hypothesis 6\.169\.4 leaves out traces: install 6\.170 or newer"):
        sample.some(st.integers(), 20, seed=0)


class Change(NamedTuple):
    """A change of a file that would make the suite shorter, and what a run must say of it."""

    file: str
    was: str
    now: str
    says: str
    clause: str = "GROW-1"
    """That of a run that needs the file: a run on one clause reads its chapter alone."""


CHANGES = {
    "cost": Change(
        "spec/kvspec/costs/bounded.py", "import append", "import append as apend", "'append'", "BOUNDED-1"
    ),
    "explorations": Change(
        "conformance/kvconform/generate/strategies/growing.py",
        "EXPLORATIONS = ",
        "EXPLORATION = ",
        "'EXPLORATIONS'",
    ),
    "laws": Change("conformance/kvconform/laws/store.py", "", "", "kvconform.laws.store", "GROW-22"),
    "kinds": Change(
        "conformance/kvconform/laws/snapshot.py",
        'kinds=caches_with("restore")',
        'kinds=("growing",)',
        "on ring",
        "GROW-22",
    ),
    "covers": Change("spec/kvspec/vectors/cover-growing.json", "", "", "cover-growing.json"),
    "a kind of an exploration": Change(
        "conformance/kvconform/generate/strategies/snapshot.py",
        'for kind in caches_with("restore"))',
        'for kind in ("growing", "ring"))',
        "/sink, which nothing gives",
        "SNAP-1",
    ),
}
"""A file without new text is deleted."""


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A copy of the packages."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "published")
        )
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_without_a_part_of_the_suite_fails_and_says_which(tree: Path, name: str) -> None:
    change = CHANGES[name]
    file = tree / change.file
    text = file.read_text(encoding="utf-8")
    assert change.was in text
    if change.now:
        file.write_text(text.replace(change.was, change.now), encoding="utf-8")
    else:
        file.unlink()
    path = {"PYTHONPATH": ":".join(str(tree / p) for p in PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "kvconform", "run", "reference", "--clause", change.clause, "--processes", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tree, env=fakes.environment() | path, timeout=120
    )
    assert (done.returncode, "Conforms" in done.stdout) == (3, False)
    said = " ".join((done.stdout + done.stderr).split())  # what is read when it is first needed fails its check
    assert "harness" in said and "NotWhole" in said and change.says in said
