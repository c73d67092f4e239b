"""`from_update`: a sound engine conforms in all it claims, and five faults behind it are each found and named."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from kvadapters.arrays import LIBRARIES
from kvadapters.update import from_update
from kvconform.generate.claims.fit_to_adapter import claimed
from kvspec.contract import description
from kvspec.errors import BadInput, Unsupported
from kvspec.geometry import DTYPES, Config
from kvspec.masks import CAUSAL
from kvspec.notation import from_sentence
from kvspec.records.run import Record
from kvspec.rows.legible import legible
from kvspec.trace import from_json
from support.engines import update_engines
from support.running.judging import broken, clause, record_of, verdicts
from support.running.local_adapter import LocalAdapter, judge_examples
from support.slow import one_in


@cache
def judged(name: str) -> Record:
    return record_of(f"{update_engines.__name__}:{name}", ("growing", "ring", "mask"), traces=3)


def test_a_sound_engine_conforms_in_all_it_claims() -> None:
    seen = judged("right")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert {found[c] for c in ("RING-1", "RING-2", "RING-6", "RING-7")} == {"PASS"}
    assert found["RING-5"] == "NOT_CLAIMED" and "ring.view" in clause(seen, "RING-5").reason


FAULTS = {
    "too_wide": ("RING-1", "wrong row", "query 0 sees a b; expected b"),
    "never_drops": ("RING-1", "wrong row", "query 0 sees a b; expected b"),
    "hands_out_its_buffer": ("CACHE-4", "alias", "intact: expected True, found False"),
    "behind_a_refusal": ("RING-7", "wrong length", "offset: expected 2, found 3"),
    "counts_before_it_checks": ("CACHE-2", "changed though refused", "offset: expected 0, found 2"),
}


@pytest.mark.parametrize("name", one_in(5, FAULTS))
def test_a_fault_is_found_and_named(name: str) -> None:
    blamed, cause, words = FAULTS[name]
    seen = judged(name)
    assert seen.exit_status == 1 and blamed in broken(seen)
    (first, *_) = [f for f in seen.failures if blamed in f.clauses and f.cause == cause]
    assert words in first.message and len(first.steps) <= 3


def test_what_several_queries_see_beyond_the_window_is_a_fault_of_the_mask() -> None:
    """Their rows have to be there; one query alone may be shown too much by either."""
    (chunk, *_) = [f for f in judged("too_wide").failures if "MASK-8" in f.clauses]
    assert "query 1 sees a b; expected b" in chunk.message and len(chunk.steps) == 1
    assert "RING-1" not in chunk.clauses and "RING-3" not in broken(judged("too_wide"))


def test_a_refusal_does_not_stand_in_for_what_is_wrong_behind_it() -> None:
    causes = [f.cause for f in judged("behind_a_refusal").failures if "RING-7" in f.clauses]
    assert causes == ["wrong length", "refused though owed"]
    assert clause(judged("behind_a_refusal"), "RING-7").reason == "offset: expected 2, found 3"


def test_arrays_that_an_engine_keeps_for_itself_are_left_alone() -> None:
    run = from_sentence("ring window=3: run 1 {append 2; append 1}; append 1")
    assert not LocalAdapter(update_engines.keeps_its_first_rows).run(run).failed


def test_an_engine_that_hands_out_no_history_is_judged_by_its_view() -> None:
    seen = judged("shown_by_its_view")
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert (found["RING-5"], found["CACHE-8"], found["RING-1"]) == ("PASS", "PARTLY_OBSERVED", "NOT_CLAIMED")
    assert clause(seen, "CACHE-8").reason == "not looked at: history"
    wide = judged("fused_too_wide")
    assert "RING-5" in broken(wide) and "wrong row" in {f.cause for f in wide.failures}


def test_a_fault_that_nothing_shows_is_no_pass() -> None:
    seen = judged("shown_by_nothing")
    assert not broken(seen)
    assert {verdicts(seen)[c] for c in ("RING-1", "RING-5", "CACHE-8")} == {"NOT_CLAIMED", "PARTLY_OBSERVED"}


def test_a_mask_without_a_history_is_no_claim() -> None:
    said = replace(update_engines.right, without=("history",)).describe()
    with pytest.raises(BadInput, match="mask: its columns are those of a history, and ring is claimed without"):
        description(said)


@pytest.mark.parametrize("name", one_in(2, ["only_below_declared", "never_declared"]))
def test_a_declared_rewind_is_no_breach(name: str) -> None:
    seen = judged(name)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)


@pytest.mark.parametrize(
    ("name", "cause"),
    one_in(
        3,
        [
            ("only_below", "refused though owed"),
            ("never", "refused though owed"),
            ("below_declared_and_more_done", "taken though refused"),
        ],
    ),
)
def test_a_rewind_is_judged_by_what_is_declared(name: str, cause: str) -> None:
    seen = judged(name)
    assert {"RING-7", "RING-10"} & broken(seen)
    assert cause in {f.cause for f in seen.failures}


def test_a_shortened_trace_holds_nothing_that_is_not_claimed() -> None:
    about = description(update_engines.counts_later_rows.describe())
    traces = [from_json(f.trace) for f in judged("counts_later_rows").failures if f.trace is not None]
    assert traces and [claimed(trace, about) for trace in traces] == traces


def test_an_engine_that_saves_and_loads_its_state_conforms_as_a_whole() -> None:
    under_test = LocalAdapter(update_engines.saves)
    judge_examples(under_test, "snapshot")
    assert [f.message for f in under_test.tally.failures] == [] and under_test.tally.own == {}
    assert {"SNAP-3", "SNAP-5", "SNAP-13"} <= set(under_test.tally.exercised)
    assert "snapshot" not in update_engines.right.describe()["chapters"]


@pytest.mark.parametrize(
    ("name", "trace", "message"),
    [
        ("saves_by_reference", "append 1; append 1; snapshot s; append 1; restore s 2; append 1", "query 0 sees"),
        ("loads_no_offset", "append 2; snapshot s; append 1; restore s 2", "offset: expected 2, found 0"),
    ],
)
def test_a_fault_in_saving_is_found(name: str, trace: str, message: str) -> None:
    seen = LocalAdapter(getattr(update_engines, name)).run(from_sentence(f"ring window=2: {trace}"))
    assert [d.message for d in seen.differences if message in d.message], seen.differences


def test_no_mask_is_given_where_the_engine_makes_none() -> None:
    right = update_engines.right
    bare = replace(right, engine=replace(right.engine, mask=None))
    assert "mask" not in bare.describe()["chapters"]
    with pytest.raises(Unsupported, match="no mask"):
        bare.open("ring", Config(window=3)).mask(CAUSAL)


def test_whether_a_trim_is_possible_is_not_known_of_a_cache_that_cannot_be_copied() -> None:
    """A lock cannot be copied. The answer "no" would accuse an engine that trims."""
    right = update_engines.right

    def make(config: Config) -> update_engines.WindowCache:
        cache = update_engines.WindowCache(config.window or 0)
        cache.lock = threading.Lock()  # type: ignore[attr-defined]
        return cache

    locked = replace(right, engine=replace(right.engine, make=make, can_trim=None))
    with pytest.raises(Unsupported, match=r"give can_trim, or claim without=\('ask',\)"):
        locked.open("ring", Config(window=3)).can_rewind(0)
    assert locked.open("ring", Config(window=3)).rewind(0) is None
    told = replace(locked, engine=replace(locked.engine, can_trim=lambda cache, n: n == 0))
    assert told.open("ring", Config(window=3)).can_rewind(0)


class IsItsOwnCopy(update_engines.WindowCache):
    """As a handle of native memory that says so."""

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class SharesWhatItHolds(update_engines.WindowCache):
    """As a handle whose number is copied, and with it no memory."""

    def __deepcopy__(self, memo: Any) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__ = self.__dict__
        return twin


@pytest.mark.parametrize(
    ("cache", "says"), [(IsItsOwnCopy, "its own deep copy"), (SharesWhatItHolds, "cut where its deep copy is")]
)
def test_nor_of_one_that_shares_its_rows_with_its_copy(cache: Any, says: str) -> None:
    """A trim of the copy would cut the cache, and a right engine would be blamed for it."""
    right = update_engines.right
    shared = replace(
        right, engine=replace(right.engine, make=lambda config: cache(config.window or 0), can_trim=None)
    )
    under_test = LocalAdapter(shared)
    seen = under_test.run(from_sentence("ring window=4: append 3; ask 2"))
    assert [want.result for want, _ in seen.steps] == ["ok", "ok"] and seen.failed
    assert says in str(seen.steps[-1][1].message)
    honest = LocalAdapter(replace(shared, without=("ask",)))
    judge_examples(honest, "ring")
    assert [f.message for f in honest.tally.failures] == []


@pytest.mark.parametrize(
    ("said", "config"),
    [
        ({"dtypes": ["f16"]}, Config(window=3, dtype="f32")),
        ({"limits": {"heads": 4}}, Config(window=3, kv_heads=5)),
        ({"limits": {"dims": {"multiple": 8, "equal": True}}}, Config(window=3, k_dim=8, v_dim=16)),
        ({"limits": {"window": {"least": 2}}}, Config(window=1)),
        ({"limits": {"batch": 1}}, Config(window=3, batch=2)),
    ],
)
def test_nothing_is_opened_that_dtypes_or_limits_exclude(said: dict[str, Any], config: Config) -> None:
    limited = replace(update_engines.right, said=said)
    with pytest.raises(Unsupported, match="beyond the dtypes or limits"):
        limited.open("ring", config)
    assert update_engines.right.open("ring", config) is not None
    with pytest.raises(ValueError, match="one row or more"):
        limited.open("ring", Config(window=0))


def test_a_word_of_the_description_that_is_given_as_a_function_is_told_its_place() -> None:
    with pytest.raises(TypeError, match="unknown function limits; what the adapter describes"):
        from_update("x", kind="growing", make=dict, update=lambda cache, keys, values: (keys, values), limits={})


def test_an_unknown_library_of_arrays_is_refused_with_those_that_are_known() -> None:
    right = update_engines.right.engine
    with pytest.raises(TypeError, match="unknown library 'jax'; known: mlx, torch"):
        from_update("a", kind="ring", make=right.make, update=right.update, arrays="jax")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_from_a_library_as_they_went(library: str, dtype: str) -> None:
    pytest.importorskip({"mlx": "mlx.core"}.get(library, library), reason=f"{library} is not installed")
    made = import_module(f"kvadapters.arrays.{library}")
    array = legible(Config(dtype=dtype), "k", 0, 3)
    back = made.from_engine(made.to_engine(array))
    assert (back.shape, back.dtype, back.tobytes()) == (array.shape, array.dtype, array.tobytes())


def test_limits_that_name_forms_claim_their_chapter_and_a_residual_window_where_it_is_named() -> None:
    given: dict[str, Any] = {"kind": "growing", "make": lambda config: None, "update": lambda *rows: rows}
    plain = from_update("plain", **given).describe()["chapters"]
    formed = from_update("formed", **given, said={"limits": {"form": ["e4m3/t"]}}).describe()["chapters"]
    beside = from_update("beside", **given, also=("residual",), said={"limits": {"form": ["int8/2"]}})
    assert "forms" not in plain and formed["forms"] == {"level": "visible", "with": []}
    chapters = beside.describe()["chapters"]
    assert chapters["forms"]["with"] == ["residual"] and "residual" not in chapters["growing"]["with"]
