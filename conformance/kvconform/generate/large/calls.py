"""Large traces of many calls: each operation that takes rows is called hundreds of times on one cache of each kind.

Each call is given several rows where that is allowed, and no row is dropped before the end. So a call that goes
wrong shows at the end, though nobody looked at it. What a call answers is looked at after each call. Rows have two
heads, and two sequences or layers, as thousands of rows that one call is given have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from kvconform.generate.large.recipe import Recipe
from kvspec.operations.table import caches_with

CALLS, ANSWERED, SLOW = 301, 131, 33
"""Calls of a trace, beyond a counter of 8 bits. They go beyond one of 7 bits where each call answers, and beyond
one of 5 bits where each call takes long."""

SEVERAL = "kv_heads=2 k_dim=5 v_dim=5"
"""Narrow rows of two heads: one of them may be taken for the other."""

FORMS = {
    "growing": " batch=2",
    "ring": " batch=2 window={all}",
    "bounded": " batch=2 max_len={all}",
    "sink": " batch=2 window={all} sinks=2 beside=1",
    "layers": " of=full,window:{all} layers=2",
}
"""Fields of caches of one sequence that show all of their rows."""


def _appended(kind: str, b: int, random: Random) -> str:
    view = "" if kind == "layers" else "; view"
    return f"{kind} {SEVERAL}{FORMS[kind].format(all=2 * b + 1)}: run {b} {{append 2}}; append 1{view}"


def _drafted(kind: str, b: int, random: Random) -> str:
    """As many drafts in one round."""
    fields = FORMS[kind].format(all=2 * b + 2)
    return f"{kind} {SEVERAL}{fields}: append 1; speculate r A; run {b} {{draft r 2}}; commit r {2 * b}; append 1"


def _stored(one: str, b: int, random: Random) -> str:
    return f"store {SEVERAL} layers=2 max_len={2 * b + 1}: run {b} {{{one}}}; append 1; fingerprint {b}"


def _stepped(b: int, random: Random) -> str:
    made = "append 2; batch 3; scatter 0 1; scatter 2 2"
    return f"store {SEVERAL} layers=2 max_len={b + 4}: {made}; run {b} {{step}}; step"


def _paged(b: int, random: Random) -> str:
    one = "append 2 sequence=0"
    size = random.choice((1, 4, 16))
    return f"page {SEVERAL} page_size={size} pages={2 * b // size + 3}: admit; run {b} {{{one}}}; append 1"


def _fed(b: int, random: Random) -> str:
    return f"ragged {SEVERAL} batch=2 padding={random.choice(('left', 'right'))}: run {b} {{feed 2,1}}; feed 1,1"


def _decoded(b: int, random: Random) -> str:
    return f"bucket {SEVERAL} layers=2 bounds=8-{b + 9}: prefill 1; run {b} {{decode}}; decode; sync"


def _blocks(b: int, random: Random) -> str:
    start = f"bucket {SEVERAL} layers=2 bounds=8-{2 * b + 9}: prefill 1"
    return f"{start}; run {b} {{block 2; unbind}}; decode; sync"


def _copied(b: int, random: Random) -> str:
    places = "; ".join(f"copy 2 {2 * i}" for i in range(b))
    return (
        f"copy {SEVERAL} capacity={2 * b} layout={random.choice(('token', 'head'))}: run 1 {{{places}}}; copy 1 0"
    )


def _computed(b: int, random: Random) -> str:
    """A long request that is computed in as many chunks."""
    return (
        f"keyed {SEVERAL} page_size=4 pages={b + 8}: request x{2 * b}y chunk=2; run {b} {{compute 0 2}}; answer 0 z"
    )


def _answers(b: int, random: Random) -> str:
    return f"keyed {SEVERAL} page_size=4 pages={b + 8}: request xy; run {b} {{answer 0 z}}; answer 0 x"


def _folded(b: int, random: Random) -> str:
    """Layers with two states, which are told after each of so many appends."""
    ops = "; ".join(f"append {random.choice((1, 2))}" for _ in range(b))
    return f"layers {SEVERAL} of=full,state,state layers=3: {ops}"


def _kept_of(b: int, random: Random) -> str:
    """As many calls of drafts, each call of two ways on; then the longest way, and what it shows."""
    of = f"full,window:{b // 2},state"
    on = "; ".join(f"branch 2 on={max(-1, 2 * i - 2 + random.choice((0, 1)))},-1" for i in range(b))
    return f"layers {SEVERAL} of={of} layers=3: append 1; {on}; settle {2 * b - 2}; append 1"


def _settled(b: int, random: Random) -> str:
    """Take drafts as often, and keep one of two each time."""
    one = f"branch 2 on=-1,-1; settle {random.choice((0, 1))}"
    return f"layers {SEVERAL} of=full,window:{b + 2} layers=2: run {b} {{{one}}}; branch 2; settle 1; append 1"


def _asked_in_blocks(b: int, random: Random) -> str:
    """Have blocks ask as often, then some more, each of which is looked at."""
    more = "; ".join(["attendblock 1,1 fill=needle"] * SLOW)
    fields = f"batch=2 padding={random.choice(('left', 'right'))}"
    return f"ragged {SEVERAL} {fields}: run {b} {{attendblock 2,1 fill=needle}}; {more}"


ASKED = {
    "growing": ("", "", ""),
    "ring": (" window=3", "", ""),
    "page": (" page_size=2 pages=99", "admit; ", " sequence=0"),
    "store": (" layers=1 max_len=140", "", " layer=0"),
}
"""Fields of caches that are asked, what comes before, and what an attend names."""


ATTENDS = {"growing": ANSWERED, "ring": ANSWERED, "page": 2 * SLOW, "store": 2 * SLOW}
"""How often they are asked."""


def _asked(kind: str, b: int, random: Random) -> str:
    fields, first, names = ASKED[kind]
    return f"{kind} {SEVERAL}{fields}: {first}{'; '.join([f'attend 1{names}'] * b)}"


AT_ONCE = 2100
"""Rows of two heads that one call is given. A third of them are turned at once."""


def _at_once(kind: str, b: int, random: Random) -> str:
    view = "" if kind == "layers" else "; view"
    return f"{kind} {SEVERAL}{FORMS[kind].format(all=b + 2)}: run 1 {{append {b}; append 1}}; append 1{view}"


def _turned(b: int, random: Random) -> str:
    return f"growing {SEVERAL}: rotate {b} 3 kv_heads=2 batch=2 k_dim=8"


ROWS: dict[str, tuple[str, ...]] = {
    "store": ("layers=2 max_len={all}", "append {n}; append 1", "append 1; fingerprint 0"),
    "page": ("page_size=16 pages=140", "admit; append {n}; append 1", "append 1"),
    "ragged": ("batch=2 padding=left", "feed {n},{few}; feed 1,1", "feed 1,1"),
    "bucket": ("layers=2 bounds=8-{all}", "prefill {n}; decode", "decode; sync"),
    "copy": ("capacity={all} layout=head", "copy {n} 0; copy 1 {n}", "copy 1 0"),
}
"""Fields of other kinds, what is given at once, and what comes after."""


def _given(kind: str, b: int, random: Random) -> str:
    fields, given, after = (text.format(n=b, few=b // 2, all=b + 4) for text in ROWS[kind])
    return f"{kind} {SEVERAL} {fields}: run 1 {{{given}}}; {after}"


MANY = 513
"""Rows that ask at once: from so many on engines split the queries of a prompt."""

WAYS = (" splits=2", " softcap=3", " heads=4", " through causal & window=100")
"""How they ask."""

PROMPTS = {
    "growing": (" kv_heads=2", "", ""),
    "ring": (" kv_heads=1 window=100", "", ""),
    "page": (" kv_heads=1 page_size=16 pages=40", "admit; ", " sequence=0"),
    "store": (f" kv_heads=1 layers=1 max_len={MANY + 1}", "", " layer=0"),
}
"""The same, of caches that are asked by all rows of a prompt."""


def _prompted(kind: str, b: int, random: Random) -> str:
    fields, first, names = PROMPTS[kind]
    start = f"{kind} k_dim=6 v_dim=6{fields}: {first}"
    return f"{start}attend {b}{names} fill=needle{random.choice(WAYS)}; attend 1{names} fill=needle"


CALLED: tuple[tuple[str, str, Callable[[int, Random], str], int, tuple[str, ...]], ...] = (
    *((kind, "append", partial(_appended, kind), CALLS, ()) for kind in FORMS),
    *(("draft", f"draft on a {kind}", partial(_drafted, kind), CALLS, (kind,)) for kind in ("growing", "ring")),
    ("store", "append", partial(_stored, "append 2"), CALLS, ()),
    ("store", "append to a layer", partial(_stored, "append 2 layer=0; append 1 layer=1"), CALLS, ()),
    ("batch", "step", _stepped, CALLS, ("store",)),
    ("page", "append", _paged, CALLS, ()),
    ("ragged", "feed", _fed, CALLS, ()),
    ("copy", "copy", _copied, CALLS, ()),
    ("bucket", "decode", _decoded, 2 * SLOW, ()),
    ("bucket", "block", _blocks, SLOW, ()),
    ("keyed", "compute", _computed, 2 * SLOW, ()),
    ("keyed", "answer", _answers, ANSWERED, ()),
    ("layers", "append to states", _folded, SLOW, ()),
    ("layers", "branch", _kept_of, SLOW, ()),
    ("layers", "settle", _settled, CALLS, ()),
    ("ragged", "attendblock", _asked_in_blocks, CALLS, ()),
    *(("attention", f"attend on a {kind}", partial(_asked, kind), n, (kind,)) for kind, n in ATTENDS.items()),
)
"""The chapter, what is called, how, how often, and the chapters beside."""

RECIPES = (
    *(
        Recipe(chapter, f"calls of {name}", make, at=(n,), beside=beside)
        for chapter, name, make, n, beside in CALLED
    ),
    *(Recipe(kind, "rows of two heads", partial(_at_once, kind), at=(AT_ONCE,)) for kind in FORMS),
    *(Recipe(kind, "rows of two heads", partial(_given, kind), at=(AT_ONCE,)) for kind in ROWS),
    Recipe("rope", "rows of two heads", _turned, at=(AT_ONCE // 3,), on=caches_with("rotate")),
    *(
        Recipe("attention", f"rows that ask on a {kind}", partial(_prompted, kind), at=(MANY,), beside=(kind,))
        for kind in PROMPTS
    ),
)
