"""The attacks: combinations of a base, a method, a trigger and an effect, chosen so that each sort is covered.

What is not an attack is left out by rule, before anything is tried: see `equivalent`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from hostile.attacks.bases import Base, Claiming, bases
from hostile.attacks.effects.effect import Effect
from hostile.attacks.effects.every import effects
from hostile.attacks.effects.rows import ROWS
from hostile.attacks.triggers.combinations import TURNED
from hostile.attacks.triggers.contents import CONTENTS
from hostile.attacks.triggers.every import triggers
from hostile.attacks.triggers.forms import form_of
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Attacked, Where

SEED = 29

TRANSFERS = ("send", "sent", "expect", "arrive", "lose", "transfers")
"""The methods of a pool of pages that are about rows in flight."""

CHAPTER_OF = {
    "attend": "attention",
    "attend_batch": "attention",
    "mask": "mask",
    "snapshot": "snapshot",
    "restore": "snapshot",
    "rotate": "rope",
    **dict.fromkeys(("pack", "unpack", *TRANSFERS), "parcels"),
    "can_append": "questions",
    "can_restore": "questions",
    "meter": "residency",
    "plan": "mem",
    "held": "mem",
    **dict.fromkeys(("step", "scatter", "rollback_sequence", "reset_batch", "replay"), "batch"),
}
"""The chapter of a method that is not of its kind."""


class Attack(NamedTuple):
    """A wrong cache: a right one, and what is wrong with it."""

    base: Base
    where: Where
    trigger: Trigger
    effect: Effect

    @property
    def id(self) -> str:
        """What it is, in words."""
        place = f"{self.where.kind} {self.where.method}" if self.where.kind != self.base.kind else self.where.method
        return f"{self.base.name}: {place}: {self.trigger.id}: {self.effect.id}"

    @property
    def chapter(self) -> str:
        """The chapter that it is about."""
        if self.where.kind == "round":
            return "draft"
        if self.where.kind == "work":
            return "batch"
        if self.where.method == "read_sequence" and self.where.kind == "store":
            return "batch"
        if self.base.kind in ("layers", "keyed") and self.where.method not in ("pack", "unpack"):
            return self.base.kind
        if form_of(self.trigger.id):
            return "forms"
        return CHAPTER_OF.get(self.where.method, self.base.kind)

    @property
    def chapters(self) -> tuple[str, ...]:
        """The chapters that it is about: a cache claims no more, so that a run is short."""
        batch = ("batch",) if self.where.method == "attend_batch" else ()
        saved = ("snapshot",) if self.where.method == "can_restore" else ()
        own = CHAPTER_OF.get(self.where.method, self.chapter)
        return (self.base.kind, self.chapter, own, *needs(self.trigger), *batch, *saved)

    @property
    def fields(self) -> tuple[str, ...]:
        """The observables in which its effect shows. LAYER says in those of histories what a layer's mask shows."""
        return (*self.effect.fields, *(("history",) if self.where == Where("layers", "mask") else ()))

    def adapter(self) -> Attacked:
        """The wrong cache as an adapter, which claims the chapters that it is about, and masks."""
        base = self.base.make()
        said = base.describe()["chapters"]
        kept = {chapter: said[chapter] for chapter in said if chapter in (*self.chapters, "mask")}
        effect = self.effect.make(self.trigger.place)
        return Attacked(Claiming(base, kept), self.where, self.trigger.when, effect)


METHODS: dict[str, tuple[str, ...]] = {
    "growing": ("append", "rewind", "free", "read", "can_rewind", "lengths"),
    "ring": ("append", "rewind", "free", "read", "can_rewind"),
    "bounded": ("append", "rewind", "free", "read", "can_rewind"),
    "sink": ("append", "rewind", "free", "read", "positions", "keep"),
    "store": ("append", "rollback", "set_length", "load", "reset", "zero", "read", "lengths"),
    "page": ("append", "fork", "truncate", "drop", "read_sequence", "free_pages", "sequences"),
    "ragged": ("feed", "attend_block", "trim", "filter", "reorder", "history", "read_sequence", "mask"),
    "bucket": ("prefill", "decode", "block", "cut", "sync", "encode", "cross", "read", "past"),
    "copy": ("copy",),
    "layers": (
        *("append", "branch", "settle", "rewind", "free"),
        *("histories", "states", "mask", "can_rewind", "lengths"),
    ),
    "keyed": (
        "request",
        "compute",
        "answer",
        "accept",
        "finish",
        "abort",
        "evict",
        "clear",
        "match",
        "read_sequence",
        "free_pages",
    ),
    "mask": ("mask",),
    "snapshot": ("snapshot", "restore"),
    "attention": ("attend",),
    "mem": ("plan", "held"),
    "questions": ("can_append", "can_restore"),
    "parcels": ("pack", "unpack"),
    "batch": ("step", "scatter", "rollback_sequence", "reset_batch", "read_sequence"),
}
"""The methods that attacks are on, by the chapters that a base claims."""


def methods(base: Base, claimed: dict[str, Any]) -> list[Where]:
    """Those of a base."""
    found = [Where(base.kind, m) for chapter in claimed for m in METHODS.get(chapter, ()) if chapter in own(base)]
    found = [where for where in found if where != Where("bucket", "attend")]
    if "attention" in claimed and "batch" in claimed:
        found.append(Where("store", "attend_batch"))
    if "batch" in claimed:
        found.append(Where("work", "replay"))
    if base.kind == "page" and "parcels" in claimed:
        found += [Where("page", method) for method in TRANSFERS]
    if "draft" in claimed:
        found += [Where("round", m) for m in ("draft", "commit", "read", "mask", "offset")]
    if "rope" in claimed:
        found.append(Where("adapter", "rotate"))
    if "residency" in claimed:
        found.append(Where("adapter", "meter"))
    return [where for where in dict.fromkeys(found) if where.method not in left_out(base, claimed)]


def left_out(base: Base, claimed: dict[str, Any]) -> set[str]:
    """The methods whose operations a base does not claim."""
    claim = claimed[base.kind]
    without = claim.get("without", ()) if isinstance(claim, dict) else ()
    return {OPERATIONS_OF.get(name, name) for name in without}


OPERATIONS_OF = {"attendblock": "attend_block"}
"""The methods of operations whose names are not theirs."""


def own(base: Base) -> set[str]:
    """The chapters whose methods a base's caches have: its kind, and what goes with it."""
    return {base.kind, *METHODS} - (
        {"growing", "ring", "bounded", "sink", "store", "page", "ragged", "layers", "keyed"} - {base.kind}
    )


EMPTYING = ("free", "reset", "zero", "batch", "admit")
"""Operations after which there are no rows."""

SAME = (
    "the last row is the one before",
    "the last row is the first",
    "the last row is stale",
    "all rows one place on",
)
SAME += ("the last two rows change places",)
"""Changes that move rows."""


DRAFTED = ("right after branch",)
"""The triggers of an operation whose rows are shown as an append's are, and otherwise than these."""


RUNS = tuple(name for name in CONTENTS if "equal rows" in name)
"""The triggers of rows whose neighbours are equal."""


def equivalent(where: Where, trigger: Trigger, effect: Effect, visible: bool) -> str:
    """Why a combination is no attack; empty if it is one. A wrong cache that is not wrong in anything that a query
    can need, or that no trace can tell from a right one, is none."""
    name = effect.id.rpartition(" (")[0]
    moves, told = name in SAME, effect.id.endswith("(told)")
    if trigger.id.startswith("equal") and (moves or name.startswith("the last sequence")):
        return "equal rows that change places are the same rows"
    if trigger.id in RUNS and (moves or effect.id.startswith("the last sequence")):
        return "equal rows that change places are the same rows"
    if trigger.id == "keys of the step before" and moves:
        return "a row that is replaced by its equal is the same row"
    if trigger.id in ("keys of zeros", "a NaN", "an infinity") and effect.sort in ("scale", "wrong row"):
        return "twice zero is zero, twice infinity is infinity, and a NaN stays one"
    if trigger.sort == "content" and effect.id in (
        "nothing is done",
        "taken though refused",
        "changed though refused",
    ):
        return "rows that are refused are mostly of another geometry, whatever they hold"
    if told and trigger.id.removeprefix("right after ") in EMPTYING:
        return "an empty cache has no rows to tell"
    if where.method == "meter" and not trigger.id.startswith("call"):
        return "a meter belongs to no cache"
    if where.method in ("mask", "history") and trigger.id.startswith("right after") and trigger.id not in DRAFTED:
        return "it is asked for only right after the rows that it is about"
    if effect.id == "nothing is done" and {where.method, trigger.id.removeprefix("right after ")} <= set(EMPTYING):
        return "what is empty stays so"
    if trigger.sort == "place" and name not in ROWS:
        return "only rows have places"
    if where.method in ("decode", "step", "replay", "attend_batch") and moves and "stale" not in name:
        return "there is one row, which cannot change places"
    if (
        trigger.id.startswith("call")
        and effect.sort in ("lost refusal", "changed though refused")
        and trigger.id not in ("call 3", "call 5")
    ):
        return "the call of a number is seldom one that is refused"
    if trigger.id in ("nobody looked since",) and (
        told or where.method in ("lengths", "sequences", "past", "read")
    ):
        return "what is told is looked at"
    if (
        visible
        and where.method in ("held", "plan", "free_pages", "restore")
        and trigger.sort in ("size", "two sizes")
    ):
        return "a cache that grows as it likes says what it likes"
    return ""


NEEDS = {
    **dict.fromkeys(("snapshot", "restore", "restored and rewound"), "snapshot"),
    **dict.fromkeys(("draft", "commit", "abandon", "drafts were kept", "drafts were dropped"), "draft"),
    **dict.fromkeys(
        ("attend", "queries were answered", "several splits", "a softcap", "learned sinks"), "attention"
    ),
    **dict.fromkeys(("scatter", "step", "batch", "a batch is there", "loaded after a batch"), "batch"),
    **dict.fromkeys(("send", "expect", "unpack"), "parcels"),
    "a snapshot is alive": "snapshot",
    "something is captured": "batch",
    **dict.fromkeys(("rotated in attention", *TURNED), "rope"),
}
"""The chapters whose operations a trigger is about."""


def needs(trigger: Trigger) -> tuple[str, ...]:
    """The chapter beside a kind that a trigger is about, if there is one."""
    found = "forms" if form_of(trigger.id) else NEEDS.get(trigger.id.removeprefix("right after "))
    return (found,) if found else ()


DONE = {"two calls of drafts": "branch", "a way was settled": "settle"}
"""The methods that were called where triggers of other words are met."""


def done_before(trigger: Trigger) -> str:
    """The method that was called before a trigger is met."""
    return DONE.get(trigger.id, trigger.id.removeprefix("right after "))


def possible() -> Iterator[Attack]:
    """All combinations that are attacks."""
    for base in bases():
        claimed = base.make().describe()["chapters"]
        visible = "visible" in str(claimed[base.kind])
        met = [
            t for t in triggers() if set(needs(t)) <= set(claimed) and done_before(t) not in left_out(base, claimed)
        ]
        for where in methods(base, claimed):
            suiting = [e for e in effects() if e.suits(where)]
            for trigger in (t for t in met if t.suits(where)):
                for effect in suiting:
                    if not equivalent(where, trigger, effect, visible):
                        yield Attack(base, where, trigger, effect)


def features(attack: Attack) -> list[Any]:
    """What a choice should have of each: chapters, methods, sorts and bases, and pairs of them."""
    trigger, effect, chapter = attack.trigger, attack.effect.sort, attack.chapter
    return [
        *((chapter, trigger.sort), (chapter, effect), (trigger.sort, effect)),
        *(attack.where, trigger.id, attack.effect.id, attack.base.name, (chapter, attack.base.name)),
    ]


RARE = "residency"
"""The chapter of too few combinations to be met by chance."""


def chosen(most: int, seed: int = SEED, chapter: str = "", text: str = "") -> list[Attack]:
    """Some of them, of all or of those on a chapter with a text in their words: each time the one, of a few at
    random, that has most of what the others lack."""
    random, seen, made = Random(seed), Counter[Any](), list[Attack]()
    left = [a for a in possible() if chapter in ("", a.chapter) and text in a.id]
    made += [a for a in left if a.chapter == RARE and a.base.name in ("Transposed growing", "reference growing")][
        :4
    ]
    while len(made) < most and left:
        best = max(
            random.sample(left, min(60, len(left))), key=lambda a: sum(1 / (1 + 3 * seen[f]) for f in features(a))
        )
        seen.update(features(best))
        left.remove(best)
        made.append(best)
    return made


FILE = Path(__file__).with_name("attacks.toml")
"""The attacks, in words, each with a trace on which it answers otherwise than its base."""


@cache
def witnesses() -> dict[str, str]:
    """The trace that shows each attack, by its words."""
    return dict(tomllib.loads(FILE.read_text(encoding="utf-8")))


@cache
def attacks() -> dict[str, Attack]:
    """The attacks of the file, by their words."""
    return {id_: named(id_) for id_ in witnesses()}


def named(id_: str) -> Attack:
    """The attack of these words. Raises KeyError where a word is unknown."""
    base_, place, trigger, effect = id_.split(": ")
    base = _named()[0][base_]
    kind, _, method = place.rpartition(" ")
    return Attack(base, Where(kind or base.kind, method), _named()[1][trigger], _named()[2][effect])


@cache
def _named() -> tuple[dict[str, Base], dict[str, Trigger], dict[str, Effect]]:
    return {b.name: b for b in bases()}, {t.id: t for t in triggers()}, {e.id: e for e in effects()}
