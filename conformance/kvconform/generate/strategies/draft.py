"""DRAFT: rounds over a ring in every phase of its wrap, or two caches with uncached layers, and random traces."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import configs
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves
from kvref.list_model.draft import DraftLayer
from kvspec.chapters import CHAPTERS
from kvspec.geometry import Config
from kvspec.operations.table import caches_with, listed
from kvspec.session.driver import Session
from kvspec.trace import Trace

WINDOWS = (1, 2, 3)

BUSY = "append 1; append 0; view; ask 0; rewind 0; free; snapshot s; speculate q A; speculate q A isolated=1"
"""Operations that a cache in an open round refuses."""

ENDED = "commit r 9"
"""Operations that an ended round refuses."""


def drafts(session: Session, layer: int = 0) -> int:
    """Count the drafts of the open round r on a layer."""
    return int(session.rounds["r"].inner.layers[layer].drafts)


def in_round(session: Session) -> bool:
    """Whether the round r is open."""
    return "r" in session.rounds and session.rounds["r"].open


def ring_moves(session: Session) -> list[str]:
    """Give moves: in a round drafts, every end and refusals, else ring moves and an isolated round."""
    ring = session.caches["A"]
    if in_round(session):
        k = drafts(session)
        more = [f"draft r {n}" for n in (0, 1, 2) if k + n <= ring.window + 2]
        ends = [f"commit r {n}" for n in range(k + 1)]
        beyond = ["commit r -1", "commit r 3", "abandon r"] if k == 2 else []
        refused = ["draft r 1 k_dim=5", BUSY] if k == 1 else []
        return [*more, *ends, *beyond, *refused]
    back = ["rewind 0", f"rewind {ring.offset - 1}"] if 0 < ring.offset <= ring.window else []
    live = ["append 1", f"append {ring.window + 1}", *back, "free", "speculate r A"]
    return [*live, "speculate r AA", *_isolated(session)]


def _isolated(session: Session) -> list[str]:
    """Give isolated rounds whose cache changes meanwhile, one nested in the other."""
    window = session.caches["A"].config.window
    changes = ("append 1", f"append {(window or 2) + 1}; append 1")
    begin = "speculate q A isolated=1; draft q 2"
    end = "draft q 1; speculate t A isolated=1; draft t 1; commit q 1; abandon q; abandon t"
    return [f"{begin}; {change}; {end}" for change in changes]


def ring_continuations(session: Session) -> list[str]:
    """View and end the drafts, then show by appends what the ring holds."""
    if in_round(session):
        return ["draft r 0; abandon r; append 1; append 1; view"]
    ended = f"{ENDED}; " if "r" in session.rounds else ""
    return [f"{ended}append 1; append 2; view"]


BOUND = 2
"""Largest offset of the growing cache when there are two caches."""


def two_moves(session: Session) -> list[str]:
    """Give rounds from begin to end over a growing cache A and a ring B, and moves that advance both."""
    if "B" not in session.caches:
        return ["open B kind=ring window=2"]
    offset = session.caches["A"].offset
    live = ["B: append 1", "rewind 0", "B: free", *(["append 1"] if offset < BOUND else [])]
    kept = range(min(2, BOUND - offset) + 1)
    rounds = [_round("AB", n) for n in kept] + [_round(shape, max(kept)) for shape in ("B-A", "-A")]
    return [*live, *rounds, _uneven(max(kept))]


def _round(shape: str, n: int) -> str:
    both = "B: draft r 1; draft r 2; B: draft r 1" if "B" in shape else "draft r 1; draft r 1"
    return f"speculate r {shape}; {both}; {f'commit r {n}' if n else 'abandon r'}"


def _uneven(n: int) -> str:
    """Give rounds whose layers have unequal numbers of drafts, some with rows of a wrong geometry."""
    return f"speculate r AB; draft r 3; B: draft r {n}; B: draft r 2 v_dim=5; commit r {n + 1}; commit r {n}"


def two_continuations(session: Session) -> list[str]:
    """Show what both caches hold."""
    if "B" not in session.caches:
        return ["view"]
    begin = ENDED if "r" in session.rounds else "view"
    return [f"{begin}; append 1; B: append 1; B: append 1; B: view; view"]


MOST_BRANCHED = 3
"""Drafts of a round with branches; further ones behave as the third does."""


def branch_moves(session: Session) -> list[str]:
    """Give drafts on each draft that there is, and on none; every choice, and what is refused."""
    cache = session.caches["A"]
    if not in_round(session):
        live = {0: ["append 1", "append 3", "speculate r A"], 1: ["append 2", "speculate r A"]}
        return live.get(cache.offset, ["speculate r A"] if cache.offset < 4 else ["free"])
    k = drafts(session)
    more = [f"draft r 1 on={other}" for other in range(-1, k)] if k < MOST_BRANCHED else []
    two = ["draft r 2 on=-1,-1", "draft r 2 on=-1,0"] if k == 0 else []
    ends = [f"choose r {draft}" for draft in range(k)]
    asked = "mask round=r none; mask round=r window=2; mask round=r window=1 & causal; draft r 0"
    refused = f"draft r 1 on={k}; draft r 1 on=-2; draft r 2 on=-1; choose r {k}; choose r -1; commit r {k}"
    return [*more, *two, *ends, *([asked, refused] if k in (0, MOST_BRANCHED) else [])]


def branch_continuations(session: Session) -> list[str]:
    """Show the way to each draft by one that hangs on it, choose one or drop all, and append to show the cache."""
    k = drafts(session) if in_round(session) else 0
    each = "".join(f"draft r 1 on={draft}; " for draft in range(-1, k))
    end = f"choose r {k - 1}" if k else "abandon r"
    begun = f"{each}draft r 0; mask round=r causal; {end}; choose r 0; " if in_round(session) else ""
    return [f"{begun}append 1; append 2; view"]


def plans() -> list[Plan]:
    """Plan a ring alone for each window, and a growing cache with a ring; branches on a cache of either kind."""
    rings = [Trace("ring", Config(window=w)) for w in WINDOWS]
    both = Trace("growing", Config(step=2))
    branched = [Trace("growing", Config(step=1)), Trace("ring", Config(window=2))]
    return [
        *(plan(f"draft ring window={t.config.window}", t, ring_moves, ring_continuations) for t in rings),
        plan("draft growing and ring", both, two_moves, two_continuations, caches=("A", "B")),
        *(plan(f"draft branches {_named(t)}", t, branch_moves, branch_continuations) for t in branched),
    ]


def _named(start: Trace) -> str:
    return start.kind if start.config.window is None else f"{start.kind} window={start.config.window}"


LONGEST = 30
"""Most operations of a random trace."""

PLAIN = ("append",) * 4 + ("rewind", "still", "still", "ask") + ("begin",) * 4 + ("draft",) * 8 + ("level",) * 4
ROUNDS = PLAIN + ("commit",) * 5 + ("abandon", "isolated", "isolated", "misfit", "still")
BRANCHED: tuple[str, ...] = ("append",) * 3 + ("rewind", "still") + ("begin",) * 4 + ("hang",) * 10 + ("draft",) * 2
BRANCHED += ("alike",) * 3 + ("choose",) * 5 + ("mask",) * 4 + ("commit", "abandon", "isolated")
EVERYTHING = ROUNDS + ("mask",) * 3 + ("snapshot", "restore", "restore")
OF = {"mask": "mask", "snapshot": "snapshot", "restore": "snapshot"}
"""The chapters of kinds of operations that are of neither this one nor the caches'."""


@st.composite
def explored(draw: st.DrawFn, kinds: Sequence[str] = ROUNDS, claimed: Collection[str] = CHAPTERS) -> Trace:
    """Draw rounds over two or three caches of different kinds, one after another, among other operations; all of
    chapters that are claimed."""
    kind = draw(st.sampled_from([each for each in caches_with("speculate") if each in claimed]))
    start, length = Trace(kind, draw(configs(kind))), draw(st.integers(6, LONGEST))
    return _Drawing(draw, start, claimed).until(length, [k for k in kinds if OF.get(k, kind) in claimed])


class _Drawing(Drawing):
    """Draws a trace on up to three caches, with rounds over them."""

    def __init__(self, draw: st.DrawFn, start: Trace, claimed: Collection[str]) -> None:
        super().__init__(draw, start)
        self.fill = self.of(*[""] * 4, " fill=bits")
        others = [each for each in ("growing", "ring window=2", "ring window=5") if each.split()[0] in claimed]
        for letter in "BC"[: draw(st.integers(0, 2))]:
            self.do(f"open {letter} kind={self.of(*others)}")
        if not draw(st.integers(0, 3)) and "store" in claimed:
            self.do("open S kind=store layers=1 max_len=4")

    def one(self) -> tuple[str, Any]:
        """Choose a cache, mostly one outside every round. Give its name and list model."""
        idle = [letter for letter in self.letters if not self.session.caches[letter].in_round]
        letter = self.of(*idle * 4, *self.letters)
        return letter, self.session.caches[letter]

    @property
    def letters(self) -> list[str]:
        """Name the caches that can enter rounds."""
        return [letter for letter in self.session.caches if letter != "S"]

    def open(self) -> dict[str, Any]:
        """Give the open rounds by name."""
        return {name: round_ for name, round_ in self.session.rounds.items() if round_.open}

    def round(self) -> tuple[str, dict[str, DraftLayer]] | None:
        """Choose a round, mostly an open one, and give its layers by their caches' letters; None if there was none
        yet."""
        names = [*self.open()] * 6 + list(self.session.rounds)[:1]
        name = self.of(*names) if names else ""
        if not name:
            return None
        round_ = self.session.rounds[name]
        return name, {letter: round_.inner.layers[i] for i, letter in enumerate(round_.letters) if letter != "-"}

    def _append(self) -> str:
        letter, cache = self.one()
        window = cache.config.window or 3
        return f"{letter}: append {self.of(1, 1, 2, window, window + 1, 0)}{self.fill}"

    def _rewind(self) -> str:
        letter, cache = self.one()
        inside = self.number(0, cache.offset)
        return f"{letter}: rewind {self.of(max(0, cache.offset - 1), inside, 0, cache.offset + 1)}"

    def _ask(self) -> str:
        return self._rewind().replace("rewind", "ask")

    def _still(self) -> str:
        return f"{self.one()[0]}: {self.of('view', 'view', 'scribble', 'free')}"

    def _begin(self) -> str:
        letters = self.draw(st.permutations(sorted(self.letters)))
        some = letters[: self.draw(st.integers(1, len(letters)))]
        some += ["S"] if "S" in self.session.caches and not self.number(0, 4) else []
        return f"speculate {self.of('r', 'r', 'q')} {self.of('', '-')}{self.of('', '-').join(some)}"

    def _isolated(self) -> str:
        return self._begin().replace("speculate r", "speculate i") + " isolated=1"

    def _draft(self) -> str:
        found = self.round()
        if found is None or not self.open():
            return self._begin()
        letter = self.of(*found[1])
        window = found[1][letter].config.window or 3
        n = self.of(1, 1, 2, 3, window, window + 1, max(0, window - 1), 0)
        return f"{letter}: draft {found[0]} {n}{self.fill}"

    def _on(self, drafts: int) -> str:
        """Draw what some new drafts hang on, beside so many: seldom what is not there."""
        n = self.of(1, 2, 3, 4, 4, 6)
        on = [self.of(self.number(-1, drafts + i - 1), drafts + i - 1, -1) for i in range(n)]
        on[-1] = self.of(*[on[-1]] * 15, drafts + n, -2)
        return f"{n} on={listed(on)}{self.fill}"

    def _hang(self) -> str:
        found = self.round()
        if found is None or not self.open():
            return self._begin()
        letter = self.of(*found[1])
        return f"{letter}: draft {found[0]} {self._on(len(found[1][letter].drafts))}"

    def _alike(self) -> str:
        """Draft the same branches on every layer."""
        found = self.round()
        if found is None or not self.open():
            return self._begin()
        drafts = self._on(min(len(layer.drafts) for layer in found[1].values()))
        return "; ".join(f"{letter}: draft {found[0]} {drafts}" for letter in found[1])

    def _choose(self) -> str:
        found = self.round()
        if found is None:
            return self._begin()
        most = max((len(layer.drafts) for layer in found[1].values()), default=0)
        inside = self.number(0, max(0, most - 1))
        return f"choose {found[0]} {self.of(inside, inside, inside, most, -1)}"

    def _misfit(self) -> str:
        said = self.of("kv_heads=4", "k_dim=17", "v_dim=3", "batch=4", "values=5")
        return f"{self._draft()} {said}" if self.open() else ""

    def _level(self) -> str:
        """Draft on the layer with the fewest drafts, as many as it lacks."""
        found = self.round()
        if found is None:
            return self._begin()
        counts = {letter: len(layer.drafts) for letter, layer in found[1].items()}
        fewest = min(counts, key=lambda letter: counts[letter])
        return f"{fewest}: draft {found[0]} {max(counts.values()) - counts[fewest]}{self.fill}"

    def _commit(self) -> str:
        found = self.round()
        if found is None:
            return self._begin()
        most = max((len(layer.drafts) for layer in found[1].values()), default=0)
        inside = self.number(0, most)
        return f"commit {found[0]} {self.of(inside, inside, most, 1, most + 1, 0, -1)}"

    def _abandon(self) -> str:
        found = self.round()
        return f"abandon {found[0]}" if found else ""

    def _mask(self) -> str:
        found = self.round()
        if found is None:
            return f"{self.one()[0]}: mask causal"
        letter = self.of(*found[1])
        queries, width = found[1][letter].queries or 1, found[1][letter].width
        line = st.text("01", min_size=width, max_size=width) if width else st.just("1")
        array = "/".join(self.draw(line) for _ in range(queries))
        parts = self.of("none", "causal", f"window={self.of(2, 2, 2, 0)}", array, f"{array} & causal")
        return f"{letter}: mask round={found[0]} {parts}"

    def _snapshot(self) -> str:
        return f"{self.one()[0]}: snapshot {self.of('s', 't')}"

    def _restore(self) -> str:
        if not self.session.snapshots:
            return self._snapshot()
        name, (letter, _) = self.of(*self.session.snapshots), self.one()
        saved = self.session.snapshots[name]
        stop = saved.stop if saved else 0
        return f"{letter}: restore {name} {self.of(stop, stop, max(0, stop - 1))}"


EXPLORATIONS = (
    Exploration("draft", (), explored, any_of=(caches_with("speculate"),)),
    Exploration("branches", ("mask",), partial(explored, BRANCHED), any_of=(caches_with("speculate"),)),
    Exploration(
        "everything", (), partial(explored, EVERYTHING), any_of=(caches_with("speculate"), ("mask", "snapshot"))
    ),
)

WALKS = Moves(
    {
        ("growing", "ring"): (
            "speculate r A; draft r {n}{fill}; draft r 1; draft r 1; commit r {few}",
            "speculate r A; draft r {n}; commit r 9999; abandon r",
            "speculate r A; draft r 2; draft r 1 v_dim=3; draft r 1; mask round=r causal; commit r 3",
            "speculate r A; append 1; draft r {few}; abandon r",
            "speculate i A isolated=1; draft i 2; append 1; draft i 1; abandon i",
            "speculate r A; draft r 4 on=-1,0,0,1; draft r 2 on=2,-1; mask round=r window=2; choose r 4",
            "speculate r A; draft r 3 on=-1,-1,1{fill}; commit r 2; draft r 1 on=3; choose r 2",
        )
    }
)
