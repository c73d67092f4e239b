"""ASK: every question at every state of small caches, and with every snapshot of them. Explorations ask just before
what they ask about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies import cache_moves, caches, draft, layers, snapshot
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, Texts, appends_after, plan
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.geometry import Config
from kvspec.operations.table import ARGUMENTS, OF_KIND, Operation, cache_of, caches_with
from kvspec.session.driver import Session
from kvspec.trace import Trace, opening

BOUND = 3
"""Largest offset of the small caches."""

STARTS = (
    Trace("growing", Config(step=2)),
    Trace("ring", Config(window=2)),
    Trace("bounded", Config(max_len=BOUND, step=2)),
    Trace("sink", Config(window=2, sinks=1)),
    Trace("layers", layers.opening("full,window:2")),
)

SAVING = (*STARTS[:2], STARTS[3])
"""Caches whose snapshots are put back."""


def moves(session: Session) -> list[str]:
    """Give appends, rewinds and `free`, and the question about each append and about more rows than fit."""
    offset = session.caches["A"].offset
    asks = [f"askappend {n}" for n in range(BOUND + 2)]
    appends = [f"append {n}" for n in range(1, BOUND - offset + 1)]
    full = ["append 1"] if session.caches["A"].kind == "bounded" else []
    return [*asks, *appends, *full, f"rewind {offset - 1}", "rewind 0", "free"]


def plans() -> list[Plan]:
    """Plan each small cache for questions about appends, and those with snapshots for both. What snapshots do to
    caches is covered in their own chapter: here questions alone are."""
    looks = {"layers": ("scribble", layers.continuations)}
    appends = [(t, moves, *looks.get(t.kind, ("view", appends_after))) for t in STARTS]
    saving = partial(_asking, snapshot.moves), snapshot.continuations
    of_layers = partial(_asking, partial(snapshot.moves_of_layers, BOUND)), snapshot.continuations_of_layers
    return [
        *(plan(f"askappend {t.kind}", t, moves, after, look=look) for t, moves, look, after in appends),
        *(plan(f"askrestore {t.kind}", t, *saving, snapshots=("s",), only_staying=True) for t in SAVING),
        plan("askrestore layers", STARTS[-1], *of_layers, look="scribble", snapshots=("s",), only_staying=True),
    ]


def _asking(others: Texts, session: Session) -> list[str]:
    """Give these moves, and the question about every restore of `s`, and of a snapshot that is none."""
    offset, saved = session.caches["A"].offset, session.snapshots.get("s")
    asks = [f"snapshot n {offset}; askrestore n {to}" for to in range(-1, offset + 2)]
    if "s" in session.snapshots:
        asks += [f"askrestore s {to}" for to in range(-1, (saved.stop if saved else offset) + 2)]
    return [*others(session), *asks]


@st.composite
def asked(draw: st.DrawFn, /, others: Callable[..., Any], **claimed: Collection[str]) -> Trace:
    """Draw a trace. Ask before most of its appends and restores whether they will be accepted."""
    trace, kinds, done = draw(others(**claimed)), dict[str, str](), list[Operation]()
    for op in trace.ops:
        if op["op"] == "open":
            kinds[cache_of(op)] = opening(trace, op)[0]
        question = QUESTIONS.get(op["op"], "")
        if question in OF_KIND[kinds.get(cache_of(op), trace.kind)] and draw(st.integers(0, 3)):
            done.append(_question(op, question, draw(st.sampled_from((0, 0, 1)))))
        done.append(op)
    return Trace(trace.kind, trace.config, tuple(done))


QUESTIONS = {"append": "askappend", "restore": "askrestore"}
"""The question about an operation."""


def _question(op: Operation, question: str, more: int) -> Operation:
    """Give the question about an operation; perhaps about one row more."""
    found = {k: v for k, v in op.items() if k in ("cache", *ARGUMENTS[question])} | {"op": question}
    return found | ({"n": op["n"] + more} if "n" in found else {})


def _of(kind: str, operations: Sequence[str], *needs: str) -> Exploration:
    strategy = partial(asked, partial(caches.traces, kind, operations))
    return Exploration("-".join((kind, *needs)), (kind, *needs), strategy, kind)


ON_ROOM = ("askappend {n}", "askappend 0")
"""Questions of a walk about its appends."""

IN_ROUNDS = partial(draft.explored, draft.EVERYTHING)

EXPLORATIONS = (
    *(_of(kind, cache_moves.SNAPSHOTS, "snapshot") for kind in caches_with("askrestore")),
    *(_of(kind, cache_moves.BASE) for kind in ("growing", "ring", "bounded", "sink")),
    Exploration("layers-snapshot", ("layers", "snapshot"), partial(asked, layers.explored_saved), "layers"),
    Exploration("layers", ("layers",), partial(asked, layers.explored), "layers"),
    Exploration("draft", ("draft",), partial(asked, IN_ROUNDS), any_of=(caches_with("speculate"), ("snapshot",))),
)

WALKS = Moves(
    {
        ("growing", "ring", "sink"): (*ON_ROOM, "askrestore s {stop}", "askrestore s {later}"),
        ("layers",): (*ON_ROOM, "askrestore s {stop}", "askrestore s {within}", "askrestore s {later}"),
        ("bounded",): ON_ROOM,
    }
)
