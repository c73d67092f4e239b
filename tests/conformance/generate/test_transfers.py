"""The census of rows in flight: at each scale transfers begin, complete, fail and are lost, and the pool goes on
between; bugs that need this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import having
from kvconform.generate.large.boundaries import sizes
from kvconform.generate.real_geometry import BOUNDARIES
from kvconform.generate.strategies.walk_moves import (
    BESIDE,
    LATE,
    LATENT,
    LENGTH,
    LONG,
    MANY,
    PROMPTS,
    SCALES,
    Scale,
)
from kvconform.generate.walks import Walks, moves
from kvconform.judge import trial
from kvconform.oracle.follow import ModelledTrace
from kvspec.contract import CHAPTERS, Description, Pair, description
from kvspec.notation import from_sentence
from kvspec.operations.table import cache_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in

POOLS = frozenset({"page", "parcels"})
"""The least claim that has rows in flight."""

REAL = (LATENT, MANY, BESIDE, LENGTH, LONG, PROMPTS)
"""Scales beyond boundaries of geometry, of lengths, or of rows at once."""

BEGIN, END = {"send": "sent", "expect": "arrive"}, ("sent", "arrive")


class Flight(NamedTuple):
    """A transfer: how it began, how often its end failed, what else the pool did until it ended, and how; an empty
    text where it has not."""

    began: str
    failed: int
    between: frozenset[str]
    ended: str
    rows: int


@cache
def walked(scale: Scale, chapters: frozenset[str] = POOLS, kind: str = "page") -> tuple[Trace, ...]:
    """The walks of a pool, or another kind, in a run of any length."""
    return tuple(Walks(kind, chapters, scale, few=True).all())


def flights(trace: Trace) -> Iterator[Flight]:
    """The transfers of a trace."""
    following, open_ = ModelledTrace(trace), dict[int, list[Any]]()
    for op in trace.ops:
        before = dict(following.session.caches["A"].in_flight)
        done, name = following.follow(op).result == "ok", op["op"]
        now = following.session.caches["A"].in_flight
        for number in now.keys() - before.keys():
            open_[number] = [name, 0, set()]
        for number in before.keys() - now.keys():
            yield _flight(before[number], name, *open_.pop(number))
        _noted(op, name, done, open_)
    flying = following.session.caches["A"].in_flight
    yield from (_flight(flying[number], "", *noted) for number, noted in open_.items())


def _flight(one: Any, ended: str, began: str, failed: int, between: set[str]) -> Flight:
    rows = len(one.rows) if one.expected is None else one.expected
    return Flight(began, failed, frozenset(between), ended, rows)


def _noted(op: dict[str, Any], name: str, done: bool, open_: dict[int, list[Any]]) -> None:
    """Note in the transfers in flight what was done to the pool, or failed."""
    for number, flight in open_.items():
        if name in END and not done and op["transfer"] == number:
            flight[1] += 1
        elif done and cache_of(op) == "A":
            flight[2].add(name)


@cache
def met(scale: Scale, chapters: frozenset[str] = POOLS) -> tuple[Flight, ...]:
    """The transfers of all walks at a scale."""
    return tuple(flight for trace in walked(scale, chapters) for flight in flights(trace))


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.name)
def test_transfers_complete_fail_and_are_lost_at_each_scale(scale: Scale) -> None:
    for chapters in (POOLS, frozenset(CHAPTERS)):
        found = met(scale, chapters)
        for began, ends in BEGIN.items():
            assert {ends, "lose"} <= {f.ended for f in found if f.began == began}, began
            assert any(f.failed for f in found if f.began == began), began


def test_between_begin_and_end_the_pool_goes_on() -> None:
    """At every scale it takes rows and begins other transfers; over all of them it does all that it can."""
    each = [frozenset().union(*(f.between for f in met(scale))) for scale in REAL]
    assert {"append", "admit", "send", "expect"} <= frozenset.intersection(*each)
    assert {"truncate", "drop", "fork", "pack", "unpack", "sent", "arrive", "lose"} <= frozenset().union(*each)


def test_the_scales_lie_beyond_each_boundary_of_a_row() -> None:
    for size in ("kv_heads", "k_dim", "v_dim"):
        largest = max(getattr(trace.config, size) for scale in REAL for trace in walked(scale))
        assert largest >= max(BOUNDARIES[size]), size


def test_many_rows_are_in_flight_and_over_several_pages() -> None:
    assert max(f.rows for f in met(LENGTH) if f.ended == "sent") >= LENGTH.length
    assert max(f.rows for f in met(PROMPTS)) >= max(PROMPTS.rows)


@pytest.mark.parametrize("kind", ["growing", "ring", "bounded", "sink", "page"])
def test_a_parcel_waits_while_its_cache_goes_on(kind: str) -> None:
    texts = {move.text for move in moves(kind, frozenset({kind, "parcels"}))}
    of = " sequence={s}" if kind == "page" else ""
    assert {f"pack {LATE}{of}", f"unpack {{{LATE}}}"} <= texts


@pytest.mark.parametrize("size", [s for s in sizes() if s.chapter == "parcels"], ids=lambda size: size.name)
def test_large_traces_of_parcels_refuse_nothing_but_parts_where_they_are_about_that(size: Any) -> None:
    for boundary in size.boundaries[::7]:
        trace = from_sentence(size.sentence(boundary, 0))
        following = ModelledTrace(trace)
        refused = {op["op"] for op in trace.ops if following.follow(op).result != "ok"}
        assert refused == ({"unpack"} if "refused" in size.name else set())


def wrong(when: Callable[[Any], bool], **bugs: Callable[[Any, Any], Callable[..., Any]]) -> Any:
    """The reference, but that these methods of a pool are others where a condition holds; a bug is given the right
    method, and the pool."""

    def method(name: str, bug: Callable[[Any, Any], Callable[..., Any]]) -> Callable[..., Any]:
        right = getattr(Reference.caches["page"], name)

        def called(self: Any, *given: Any) -> Any:
            do = right.__get__(self)
            return (bug(do, self) if when(self) else do)(*given)

        return called

    made = {name: method(name, bug) for name, bug in bugs.items()}
    return having(page=type("Wrong", (Reference.caches["page"],), made))()


def forgotten(do: Any, pool: Any) -> Callable[..., Any]:
    """Nothing is done."""
    return lambda *given: None


def taken_late(do: Any, pool: Any) -> Callable[..., Any]:
    """What arrives when its transfer has ended is taken as a new sequence."""
    return lambda transfer, *parts: do(transfer, *parts) if flies(pool, transfer) else pool.unpack(*parts)


def given_up(do: Any, pool: Any) -> Callable[..., Any]:
    """The pool remembers which pages a transfer had that was lost."""

    def lose(transfer: int) -> None:
        flying = pool.in_flight.get(transfer)
        do(transfer)
        pool.given_up = flying.table if flying.expected else []

    return lose


def written_late(do: Any, pool: Any) -> Callable[..., Any]:
    """What arrives when its transfer was lost is refused, but its rows are written to pages that it had."""

    def arrive(transfer: int, *parts: Any) -> Any:
        table = getattr(pool, "given_up", [])
        if table and not flies(pool, transfer) and parts[0].offset <= len(table) * pool.config.page_size:
            keys, values = pool.found(parts, range(parts[0].offset))
            pool.pool.write(table, 0, Pair(keys[0], values[0]))
        return do(transfer, *parts)

    return arrive


def flies(pool: Any, transfer: int) -> bool:
    """Tell whether a transfer is in flight."""
    return transfer < len(pool.transfers()) and pool.transfers()[transfer] >= 0


def other_end(do: Any, pool: Any) -> Callable[..., Any]:
    """One row more is expected."""
    return lambda n: do(n + 1)


def anew(do: Any, pool: Any) -> Callable[..., Any]:
    """What was sent is what the last sequence has now."""

    def sent(transfer: int) -> Any:
        found, lengths = do(transfer), pool.sequences()
        return pool.pack(len(lengths) - 1) if lengths else found

    return sent


PLANTED = {
    "sent, from 33 heads on": (lambda p: p.config.kv_heads >= 33, {"sent": anew}),
    "sent, from keys of 257 on": (lambda p: p.config.k_dim >= 257, {"sent": anew}),
    "sent, with 5 sequences": (lambda p: len(p.sequences()) >= 5, {"sent": anew}),
    "sent, of 129 rows": (lambda p: max(p.sequences(), default=0) >= 129, {"sent": anew}),
    "expect, pages of 17": (lambda p: p.config.page_size >= 17, {"expect": other_end}),
    "expect, keys of 65 in 4 heads": (
        lambda p: p.config.k_dim >= 65 and p.config.kv_heads >= 4,
        {"expect": other_end},
    ),
    "lose, values of 128": (lambda p: p.config.v_dim >= 128, {"lose": forgotten}),
    "lose, of three in flight": (lambda p: len([n for n in p.transfers() if n >= 0]) >= 3, {"lose": forgotten}),
    "late rows taken, from 33 heads on": (lambda p: p.config.kv_heads >= 33, {"arrive": taken_late}),
    "late rows written, keys of 257": (
        lambda p: p.config.k_dim >= 257,
        {"lose": given_up, "arrive": written_late},
    ),
}
"""Bugs of transfers that begin at a size, by what they are."""


def differs(adapter: Any, about: Description, kind: str = "page") -> bool:
    """Whether a walk at a scale of geometry or length shows that an adapter is wrong."""
    chapters = frozenset({kind, "parcels"})
    for trace in (t for scale in (LATENT, MANY, BESIDE, LENGTH) for t in walked(scale, chapters, kind)):
        level = trial.level_of(trace, about)
        if trial.run(trace, Session(adapter, trial.observables(trace, about, level)), about, level).failed:
            return True
    return False


@pytest.mark.parametrize("name", one_in(3, PLANTED))
def test_a_bug_of_a_transfer_that_begins_at_a_size_is_found(name: str) -> None:
    when, bugs = PLANTED[name]
    adapter = wrong(when, **bugs)
    assert differs(adapter, description(Reference().describe()))


class OfAnyStep(Reference.caches["layers"]):  # type: ignore[name-defined, misc]
    """Many layers, whose parts are taken for those of the first one's step."""

    def unpack(self, *parts: Any) -> None:
        """Take the parts for one step's."""
        many, step = len(self.own) >= 9, parts[0].descriptor["offset"]
        super().unpack(*(p._replace(descriptor={**p.descriptor, "offset": step}) if many else p for p in parts))


def test_a_part_of_a_layer_that_comes_late_is_found() -> None:
    assert differs(having(layers=OfAnyStep)(), description(Reference().describe()), "layers")


def test_a_right_pool_is_not_accused() -> None:
    assert not differs(wrong(lambda pool: False, sent=anew), description(Reference().describe()))
