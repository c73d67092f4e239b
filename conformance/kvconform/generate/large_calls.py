"""Large traces of many calls: each operation that takes rows is called hundreds of times on one cache of each kind.

Each call is given several rows where it may be, and all rows are there at the end: what one call in hundreds did
wrong still shows then, though nobody looked at it. What a call answers is looked at after each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from kvconform.generate.large_recipe import NARROW, Recipe

CALLS, ANSWERED, SLOW = 521, 131, 33
"""Calls of a trace, beyond a counter of 9 bits; where each call answers, of 7 bits; and where each takes long."""

FORMS = {
    "growing": "",
    "ring": " window={all}",
    "bounded": " max_len={all}",
    "sink": " window={all} sinks=2 beside=1",
    "layers": " of=full,window:{all} layers=2",
}
"""Fields of caches of one sequence that show all of their rows."""


def _appended(kind: str, b: int, random: Random) -> str:
    view = "" if kind == "layers" else "; view"
    return f"{kind} {NARROW}{FORMS[kind].format(all=2 * b + 1)}: run {b} {{append 2}}; append 1{view}"


def _drafted(kind: str, b: int, random: Random) -> str:
    """As many drafts in one round."""
    fields = FORMS[kind].format(all=2 * b + 2)
    return f"{kind} {NARROW}{fields}: append 1; speculate r A; run {b} {{draft r 2}}; commit r {2 * b}; append 1"


def _stored(b: int, random: Random) -> str:
    one = random.choice(("append 2", "append 2 layer=0; append 1 layer=1"))
    return f"store {NARROW} layers=2 max_len={2 * b + 1}: run {b} {{{one}}}; append 1; fingerprint {b}"


def _stepped(b: int, random: Random) -> str:
    made = "append 2; batch 3; scatter 0 1; scatter 2 2"
    return f"store {NARROW} layers=1 max_len={b + 4}: {made}; run {b} {{step}}; step"


def _paged(b: int, random: Random) -> str:
    one = "append 2 sequence=0"
    size = random.choice((1, 4, 16))
    return f"page {NARROW} page_size={size} pages={2 * b // size + 3}: admit; run {b} {{{one}}}; append 1"


def _fed(b: int, random: Random) -> str:
    return f"ragged {NARROW} batch=2 padding={random.choice(('left', 'right'))}: run {b} {{feed 2,1}}; feed 1,1"


def _decoded(b: int, random: Random) -> str:
    return f"bucket {NARROW} layers=1 bounds=8-{b + 9}: prefill 1; run {b} {{decode}}; decode; sync"


def _blocks(b: int, random: Random) -> str:
    start = f"bucket {NARROW} layers=1 bounds=8-{2 * b + 9}: prefill 1"
    return f"{start}; run {b} {{block 2; unbind}}; decode; sync"


def _copied(b: int, random: Random) -> str:
    places = "; ".join(f"copy 2 {2 * i}" for i in range(b))
    return f"copy {NARROW} capacity={2 * b} layout={random.choice(('token', 'head'))}: run 1 {{{places}}}; copy 1 0"


def _computed(b: int, random: Random) -> str:
    """A long request that is computed in as many chunks."""
    return (
        f"keyed {NARROW} page_size=4 pages={b + 8}: request x{2 * b}y chunk=2; run {b} {{compute 0 2}}; answer 0 z"
    )


def _answers(b: int, random: Random) -> str:
    return f"keyed {NARROW} page_size=4 pages={b + 8}: request xy; run {b} {{answer 0 z}}; answer 0 x"


def _folded(b: int, random: Random) -> str:
    """Layers with two states, which are told after each of so many appends."""
    ops = "; ".join(f"append {random.choice((1, 2))}" for _ in range(b))
    return f"layers {NARROW} of=full,state,state layers=3: {ops}"


ASKED = {
    "growing": ("", "", ""),
    "ring": (" window=3", "", ""),
    "page": (" page_size=2 pages=99", "admit; ", " sequence=0"),
    "store": (" layers=1 max_len=140", "", " layer=0"),
}
"""Fields of caches that are asked, what comes before, and what an attend names."""


def _asked(kind: str, b: int, random: Random) -> str:
    fields, first, names = ASKED[kind]
    return f"{kind} {NARROW}{fields}: {first}{'; '.join([f'attend 1{names}'] * b)}"


MANY = 513
"""Rows that ask at once: from so many on engines split the queries of a prompt."""

WAYS = (" splits=2", " softcap=3", " heads=2", " through causal & window=100")
"""How they ask."""

PROMPTS = {
    "growing": ("", "", ""),
    "ring": (" window=100", "", ""),
    "page": (" page_size=16 pages=40", "admit; ", " sequence=0"),
    "store": (f" layers=1 max_len={MANY + 1}", "", " layer=0"),
}
"""The same, of caches that are asked by all rows of a prompt."""


def _prompted(kind: str, b: int, random: Random) -> str:
    fields, first, names = PROMPTS[kind]
    start = f"{kind} kv_heads=1 k_dim=6 v_dim=6{fields}: {first}"
    return f"{start}attend {b}{names} fill=needle{random.choice(WAYS)}; attend 1{names} fill=needle"


CALLED: tuple[tuple[str, str, Callable[[int, Random], str], int, tuple[str, ...]], ...] = (
    *((kind, "append", partial(_appended, kind), CALLS, ()) for kind in FORMS),
    *(("draft", f"draft on a {kind}", partial(_drafted, kind), CALLS, (kind,)) for kind in ("growing", "ring")),
    ("store", "append", _stored, CALLS, ()),
    ("batch", "step", _stepped, CALLS, ("store",)),
    ("page", "append", _paged, CALLS, ()),
    ("ragged", "feed", _fed, CALLS, ()),
    ("copy", "copy", _copied, CALLS, ()),
    ("bucket", "decode", _decoded, ANSWERED, ()),
    ("bucket", "block", _blocks, SLOW, ()),
    ("keyed", "compute", _computed, 2 * SLOW, ()),
    ("keyed", "answer", _answers, ANSWERED, ()),
    ("layers", "append to states", _folded, SLOW, ()),
    *(("attention", f"attend on a {kind}", partial(_asked, kind), ANSWERED, (kind,)) for kind in ASKED),
)
"""The chapter, what is called, how, how often, and the chapters beside."""

RECIPES = (
    *(
        Recipe(chapter, f"calls of {name}", make, at=(n,), beside=beside)
        for chapter, name, make, n, beside in CALLED
    ),
    *(
        Recipe("attention", f"rows that ask on a {kind}", partial(_prompted, kind), at=(MANY,), beside=(kind,))
        for kind in PROMPTS
    ),
)
