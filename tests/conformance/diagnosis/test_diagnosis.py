"""Diagnosis: planted bugs are named, others are not; it makes no run fail or hang, and fails no sound cache."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from kvadapters.reference import Reference
from kvconform.bugs import real
from kvconform.bugs.catalogue import CLASSES
from kvconform.bugs.known_bugs import common, common_in, known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import covers, examples
from kvconform.diagnosis import diagnose
from kvconform.diagnosis.compare import alike
from kvconform.diagnosis.neighbours import neighbours
from kvconform.judge import trial
from kvconform.runner import journal
from kvconform.runner.record.record import kept
from kvref.caches.ring import Ring
from kvreports import json_file
from kvreports.run import diagnosis as diagnosis_report
from kvreports.run import text as run_text
from kvspec import notation
from kvspec.contract import Description, Pair, description
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES
from kvspec.reading import anomalies
from kvspec.reading.clauses import index
from kvspec.records.run import Failure, Fits, KnownBug, Record, VerdictName
from kvspec.session.driver import Session
from kvspec.trace import Trace, from_json, used_chapters
from support.running.local_adapter import LocalAdapter
from support.samples.record_samples import failing
from support.slow import counts, one_in

ROOT = Path(__file__).parents[3]
KNOWN = known_bugs()
UNSHOWN = {m.id for m in common_in("at_scale", "unseen", "unseen_beside", "snapshots", "inputs")}
"""Bugs that neither examples nor covers show."""
SAMPLE = random.Random(5).sample(sorted(set(KNOWN) - UNSHOWN), 10)
"""Ten of all others, by chance, the same every time."""


def ring_of(bug: str) -> Any:
    """The ring that has a bug."""
    return KNOWN[bug].adapter().caches["ring"]


RingStaleCursor = ring_of("stale-cursor/RingStaleCursor")
RingOneWide = ring_of("window-off-by-one/RingOneWide")
RingOneNarrow = ring_of("window-off-by-one/RingOneNarrow")
HeadsReversed = ring_of("wrong-head/HeadsReversed")


def under_test_of(adapter: Any, chapters: tuple[str, ...]) -> LocalAdapter:
    """An adapter judged on worked examples, and on the covers where those find nothing."""
    under_test = LocalAdapter(adapter)
    for source, chapter in itertools.product((examples, covers), chapters):
        for item in source(chapter) if source is examples or not under_test.tally.failures else ():
            if used_chapters(item.trace) <= set(under_test.adapter.chapters):
                under_test.judge(item.trace, "example")
    return under_test


def looked_at(under_test: LocalAdapter) -> list[list[KnownBug]]:
    """The diagnosis of each failure that was looked at, the shortest first."""
    found = diagnose.diagnose(kept(under_test.tally), lambda t: under_test.run(t, past=True), under_test.adapter)
    return [found[f.key()] for f in kept(under_test.tally) if f.key() in found]


def ring(kind: type[Ring], **declared: Any) -> Any:
    """The reference with this ring, which may declare something else."""

    class Faulty(Reference):
        """As the reference, but for its ring."""

        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ring": kind}

        def describe(self) -> dict[str, Any]:
            """As the reference, or with other chapters."""
            return super().describe() | declared

    return Faulty()


def chapters_of(mutant: Mutant) -> tuple[str, ...]:
    """The chapters whose traces find a mutant."""
    return mutant.chapters or tuple(
        dict.fromkeys(chapter for c in mutant.clauses for chapter in index()[c].chapters)
    )


@pytest.mark.parametrize("count", counts(3, 10))
def test_eight_of_ten_planted_bugs_are_named_first(count: int) -> None:
    first = {}
    for name in SAMPLE[-count:]:
        looked = looked_at(under_test_of(KNOWN[name].adapter(), chapters_of(KNOWN[name])))
        first[name] = looked[0][0].id if looked and looked[0] else None
    assert sum(name == found for name, found in first.items()) >= 0.8 * count, first


class Silvered(Ring):
    """The third row of every prefill is stored with its signs turned: nobody's bug."""

    def _prefill(self, new: Pair) -> None:
        turned = Pair(new.keys.copy(), new.values.copy())
        turned.keys[:, :, 2:3] *= -1
        super()._prefill(turned)


def test_a_bug_that_nobody_has_is_not_named() -> None:
    looked = looked_at(under_test_of(ring(Silvered), ("ring",)))
    assert looked
    assert not any(looked)


VISIBLE = {"chapters": {"ring": {"level": "visible", "grows": "free"}, "mask": "visible"}}


class NarrowAndStale(RingOneNarrow, RingStaleCursor):  # type: ignore[misc]
    """Two bugs at once."""


def test_two_bugs_at_once_are_not_taken_for_one() -> None:
    looked = looked_at(under_test_of(ring(NarrowAndStale), ("ring",)))
    assert not any(n.id.endswith("RingStaleCursor") for named in looked for n in named)


class Unchecked(RingOneWide):  # type: ignore[misc,valid-type]
    """One row too wide, and takes rows of any dtype and more values than keys, as most engines do."""

    def append(self, keys: Any, values: Any) -> None:
        n = min(keys.shape[2], values.shape[2])
        super().append(*(a[:, :, :n].astype(DTYPES[self.config.dtype]) for a in (keys, values)))


def test_a_bug_is_named_though_the_cache_checks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the neighbours some must have rows that it should refuse: which ones are drawn may leave them all out."""

    def and_misfits(trace: Trace, adapter: Description) -> list[Trace]:
        misfit = notation.operations("append 2 values=3")
        return [*neighbours(trace, adapter), Trace(trace.kind, trace.config, (*misfit, *trace.ops))]

    monkeypatch.setattr(diagnose, "neighbours", and_misfits)
    looked = looked_at(under_test_of(ring(Unchecked, **VISIBLE), ("ring",)))
    wide = [bug for bugs in looked for bug in bugs if bug.id.endswith("RingOneWide")]
    assert wide and any(bug.fits.traces < bug.fits.of for bug in wide)


def test_a_missing_check_is_not_diagnosed_as_another_bug() -> None:
    takes = failure_on(notation.trace("ring", "window=2", "append 2 values=1").to_json())
    under_test = LocalAdapter(ring(Unchecked, **VISIBLE))
    found = diagnose.diagnose([takes], lambda t: under_test.run(t, past=True), under_test.adapter)
    assert not any(bug.id.endswith("RingOneWide") for bugs in found.values() for bug in bugs)


class GoesBackAnywhere(Ring):
    """Takes every rewind, and says so before."""

    def can_rewind(self, to: int) -> bool:
        return True

    def rewind(self, to: int) -> None:
        if super().can_rewind(to):
            super().rewind(to)
        else:
            self.offset = self.index = max(0, to)


def test_a_ring_that_takes_every_rewind_has_no_bug_of_can_rewind_alone() -> None:
    asks = failure_on(notation.trace("ring", "window=1", "ask 1").to_json())
    under_test = LocalAdapter(ring(GoesBackAnywhere, **VISIBLE))
    found = diagnose.diagnose([asks], lambda t: under_test.run(t, past=True), under_test.adapter)
    assert not any(bug.id.endswith("AWindowBack") for bugs in found.values() for bug in bugs)


def test_a_sound_cache_is_not_diagnosed() -> None:
    under_test = LocalAdapter(Reference())
    trace = examples("ring")[0].trace
    right = failure_on(trace.to_json())
    assert diagnose.diagnose([right], lambda t: under_test.run(t, past=True), under_test.adapter) == {}


def failure_on(trace: dict[str, Any], verdict: VerdictName = "FAIL") -> Failure:
    """A failure as it stands in a record, as far as a diagnosis looks at it."""
    return Failure(
        verdict=verdict, clauses=["CACHE-8"], implicated=[], source="example", test="", oracle="",
        field="", message="", words="", trace=trace, steps=[], deterministic=True,
    )  # fmt: skip


@pytest.mark.parametrize("kind", one_in(3, [RingOneWide, RingStaleCursor, RingOneNarrow]))
def test_bugs_are_named_at_level_visible(kind: type[Ring]) -> None:
    under_test = under_test_of(ring(kind, **VISIBLE), ("ring",))
    looked = looked_at(under_test)
    assert {f.oracle for f in kept(under_test.tally)} == {"list model"}
    assert kind.__name__ in [n.id.partition("/")[2] for n in looked[0]]
    assert {n.anomaly for n in looked[0]} == {KNOWN[i].id.partition("/")[0] for i in KNOWN if kind.__name__ in i}


TRACE = {"kvtrace": 2, "kind": "ring", "config": {"window": 3, "kv_heads": 2}}
WRAPPED = [{"op": "append", "n": 3}, {"op": "rewind", "to": 1}, {"op": "append", "n": 1}, {"op": "append", "n": 1}]


@pytest.mark.parametrize("declared", [{}, VISIBLE])
def test_answers_that_differ_are_not_alike(declared: dict[str, Any]) -> None:
    trace, about = from_json({**TRACE, "ops": WRAPPED}), description(ring(Ring, **declared).describe())
    level = trial.level_of(trace, about)
    kinds = [Ring, RingStaleCursor, RingOneNarrow, HeadsReversed]
    observed = trial.observables(trace, about, level)
    seen = [trial.run(trace, Session(ring(k), observed), about, level, past=True) for k in kinds]
    assert all(len(s.steps) == len(trace.ops) for s in seen), "a trial goes on past the first difference"
    for (i, one), (j, other) in itertools.product(enumerate(seen), repeat=2):
        assert alike(one, other, about) == (i == j)


def test_neighbours_are_traces_beside_the_trace() -> None:
    about = description(Reference().describe())
    trace = from_json({**TRACE, "ops": WRAPPED})
    near = neighbours(trace, about)
    assert any(t.ops[:-1] == trace.ops for t in near)
    assert any(len(t.ops) < len(trace.ops) for t in near)
    assert trace not in near
    assert near == neighbours(trace, about)
    one = description(Reference().describe() | {"limits": {"append": 1}})
    assert all(op.get("n", 0) <= 1 for t in neighbours(trace, one) for op in t.ops if op["op"] == "append")


def broken(trace: Any) -> Any:
    """An adapter under test that breaks."""
    raise RuntimeError("no more")


def test_what_breaks_is_left_out() -> None:
    about = description(Reference().describe())
    assert diagnose.diagnose([failure_on({**TRACE, "ops": WRAPPED})], broken, about) == {}
    assert diagnose.diagnose([failure_on({**TRACE, "ops": []}, "HANG")], broken, about) == {}
    assert diagnose.diagnose([failure_on({"kvtrace": "?"})], broken, about) == {}


class Hanging(Ring):
    """Never comes back."""

    def rewind(self, to: int) -> None:
        while True:
            time.sleep(0.01)


def test_a_mutant_that_hangs_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = Mutant("hangs", "RING", "Hangs.", ("RING-7",), lambda: ring(Hanging))
    known = {m.id: m for m in (hangs, KNOWN["stale-cursor/RingStaleCursor"])}
    monkeypatch.setattr(diagnose, "known_bugs", lambda: known)
    monkeypatch.setattr(diagnose, "EACH", 0.2)
    under_test = LocalAdapter(ring(RingStaleCursor))
    found = diagnose.diagnose(
        [failure_on({**TRACE, "ops": WRAPPED})], lambda t: under_test.run(t, past=True), under_test.adapter
    )
    assert [[n.id for n in named] for named in found.values()] == [["stale-cursor/RingStaleCursor"]]


def test_time_that_is_up_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose, "SECONDS", 0.0)
    assert looked_at(under_test_of(ring(RingStaleCursor), ("ring",))) == []


def run(adapter: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """`kvconform run`, as a user calls it: the adapter lives in a worker."""
    command = [sys.executable, "-m", "kvconform", "run", adapter, "--report", str(folder / "report"), *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.mark.slow  # the demo shows it in every run
@pytest.mark.parametrize("name", ["stale_cursor", "silent-no-op/StoreResetsNothing", "TRIM-08/DeafToRollback"])
def test_a_run_ends_with_its_diagnosis(name: str, tmp_path: Path) -> None:
    known = "stale-cursor/RingStaleCursor" if name == "stale_cursor" else name
    (tmp_path / "mine.py").write_text(
        (ROOT / "docs" / "examples" / "stale_cursor.py").read_text()
        if name == "stale_cursor"
        else f"from kvconform.bugs import known_bugs as k\nAdapter = k.known_bugs()[{name!r}].adapter\n"
    )
    clause = KNOWN[known].clauses[0]
    done = run("mine:Adapter", tmp_path, "--clause", clause, "--quick")
    assert done.returncode == 1, done.stderr
    assert f"(`{known}`)".replace("`", "") in " ".join(done.stdout.split())
    record = json_file.load(tmp_path / "report" / "record.json", Record)
    diagnosis = record.failures[0].diagnosis
    assert diagnosis and diagnosis[0].id == known
    for page in ("report.md", "report.html"):
        assert known.partition("/")[2] in (tmp_path / "report" / page).read_text()
    _, total = journal.read(tmp_path / "report" / "journal.jsonl")
    assert next(n[0].id for n in total.diagnosis.values()) == known


def test_a_run_that_passes_has_no_diagnosis(tmp_path: Path) -> None:
    done = run("reference", tmp_path, "--clause", "MEM-17", "--quick")
    assert done.returncode == 0, done.stderr
    assert "Diagnosis" not in done.stdout
    assert '"diagnosis"' not in (tmp_path / "report" / "record.json").read_text()


def test_every_known_bug_is_an_anomaly() -> None:
    assert {m.anomaly for m in KNOWN.values()} == set(anomalies.anomalies())
    assert {of.anomaly for of in CLASSES.values()} <= set(anomalies.anomalies())


def test_a_bug_that_is_what_most_of_its_class_are_does_not_say_so() -> None:
    folder = Path(str(real.__file__)).parent
    texts = [f.read_text() for f in folder.glob("*.py")]
    said = [m for text in texts for m in re.findall(r'@planted\(\s*"([A-Z]+)-\d+"[^)]*?anomaly="([a-z-]+)"', text)]
    rows = [row for f in folder.glob("*.toml") for row in tomllib.loads(f.read_text()).items()]
    said += [(id_.partition("-")[0], row["anomaly"]) for id_, row in rows if "anomaly" in row]
    assert len(said) > 90
    assert [(name, anomaly) for name, anomaly in said if CLASSES[name].anomaly == anomaly] == []


def test_common_bugs_stand_in_the_order_of_the_appendix() -> None:
    order = list(anomalies.anomalies())
    places = [order.index(m.anomaly) for m in common()]
    assert places == sorted(places)


def test_anomalies_are_guarded_by_clauses_that_there_are() -> None:
    for anomaly in anomalies.anomalies().values():
        assert set(anomaly.clauses) <= set(index()), anomaly.id
        assert anomaly.effect
        assert anomaly.trace


SOUND = "### a-b: name\n\nWhat.\n\n*In a trace:* x.\n\n*In a model:* y.\n\n*Guarded by:* GROW-1.\n"


@pytest.mark.parametrize(
    ("sound", "wrong"),
    [
        ("### a-b: name", "### A-b: name"),
        ("What.\n\n", ""),
        ("*In a model:* y.\n\n", ""),
        ("GROW-1.", "GROW-1 and others."),
        ("In a trace", "In trace"),
    ],
)
def test_an_appendix_that_cannot_be_read_is_an_error(sound: str, wrong: str) -> None:
    assert [a.id for a in anomalies.read(SOUND)] == ["a-b"]
    assert sound in SOUND
    with pytest.raises(BadInput):
        anomalies.read(SOUND.replace(sound, wrong))


def named(**more: Any) -> Failure:
    """A failure with a diagnosis."""
    bug = KNOWN["TRIM-08/DeafToRollback"]
    fields: Any = {"id": bug.id, "says": bug.says, "link": bug.link, "anomaly": "silent-no-op"} | more
    return replace(failure_on({}), diagnosis=[KnownBug(clauses=["STORE-14"], fits=Fits(traces=9, of=9), **fields)])


def test_a_diagnosis_says_what_a_model_makes_of_it() -> None:
    first, effect = diagnosis_report.paragraphs(named())
    assert "one with a silent no-op" in first
    assert "on 8 neighbours your cache differs from the spec exactly as this bug does" in first
    assert "See STORE-14." in first and "must refuse" not in first
    some = named()
    some.diagnosis[0].fits = Fits(traces=7, of=9)  # type: ignore[index,union-attr]
    assert (
        "On 2 other neighbours your cache also takes what it must refuse." in diagnosis_report.paragraphs(some)[0]
    )
    assert anomalies.anomalies()["silent-no-op"].effect in effect
    assert diagnosis_report.paragraphs(replace(failure_on({}), diagnosis=[])) == [diagnosis_report.NONE]
    assert diagnosis_report.paragraphs(failure_on({})) == []
    assert len(diagnosis_report.paragraphs(named(anomaly="nobody knows", link=""))) == 1


def test_records_without_a_diagnosis_still_load() -> None:
    record = to_builtins(failing())
    for failed in record["failures"]:
        failed.pop("diagnosis", None)
    loaded = json_file.loads(json.dumps(record), Record)
    assert "Diagnosis" not in run_text.render([loaded], index())
    assert "Diagnosis" in run_text.render([failing()], index())
