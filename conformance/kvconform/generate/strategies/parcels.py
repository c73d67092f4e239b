"""MOVE: parcels of small caches in every state, carried in every order, damaged, and unpacked here and in caches of
other kinds and sizes."""

from __future__ import annotations

from functools import partial
from typing import Any

from kvconform.generate.strategies import cache_moves, layer_parcels, page
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, appends_after, plan
from kvconform.generate.strategies.walk_moves import LATE, Moves
from kvspec.geometry import Config
from kvspec.operations.table import caches_with
from kvspec.operations.texts import APART, TOGETHER
from kvspec.session.driver import Session
from kvspec.trace import Trace

BOUND = 3
"""Largest offset of the small caches."""

STARTS = (
    Trace("growing", Config(step=2)),
    Trace("ring", Config(window=1)),
    Trace("ring", Config(window=3, step=1)),
    Trace("bounded", Config(max_len=BOUND, step=2)),
    Trace("sink", Config(window=2, sinks=1)),
    Trace("sink", Config(window=2, sinks=1, beside=1, shifted=1)),
)

DAMAGES = ("cut=1", "flip=3", "version=2")
"""What a carrier may do to a parcel."""

OTHERS = (
    *("kv_heads=1", "dtype=f32", "k_dim=6 v_dim=8", "batch=2", "form=int8/1"),
    *("kind=growing", "kind=ring window=2", "kind=ring window=4", "kind=bounded max_len=2"),
    "kind=sink window=3 sinks=1",
)
"""Caches that a parcel comes to: of another geometry, and of another kind or size."""


RANKS = ("kv_heads=1 rank=0/2", "kv_heads=1 rank=1/2")
"""The ranks that have a head each of the small caches."""


def moves(session: Session) -> list[str]:
    """Give appends, rewinds and `free`. One parcel comes back, in each order and damaged, and one comes to
    others."""
    cache = session.caches["A"]
    sizes = [n for n in (1, 2) if session.config.window or cache.offset + n <= BOUND]
    base = [*(f"append {n}" for n in sizes), f"rewind {cache.offset - 1}", "rewind 0", "free"]
    return [*base, "pack x; unpack x", *_carried("pack x", "unpack y"), *map(_elsewhere, OTHERS)]


def of_ranks(session: Session) -> list[str]:
    """Give a few rows; parcels of ranks, of two steps, and of keys and values in one buffer."""
    ways = [f"pack x; {_through_ranks('pack', *order)}; unpack t" for order in ((0, 1), (1, 0), (1, 1))]
    orders = [f"pack x; carry x y axes={order} page={1 + i}; unpack y" for i, order in enumerate(TOGETHER)]
    room = session.config.window or session.caches["A"].offset < BOUND - 1
    stale = "pack x; append 1; pack y; collect x y t; unpack t; rewind 0"
    return [
        "rewind 0",
        *["append 1"] * bool(room),
        *ways,
        *orders,
        f"pack x; carry x y axes={TOGETHER[2]} cut=1; unpack y",
        stale,
    ]


def of_pools_of_ranks(session: Session) -> list[str]:
    """Give a row for a sequence, and parcels of ranks."""
    pool = session.caches["A"]
    if not pool.in_use:
        return ["admit"]
    through = (_through_ranks("pack sequence=0", *order) for order in ((1, 0), (0, 0)))
    ways = [f"pack x sequence=0; {parts}; unpack t; drop 1" for parts in through]
    return ["append 1", "truncate 0 0", "drop 0", *ways]


def _through_ranks(pack: str, *order: int) -> str:
    """Bring the parcel x to both ranks, which take a row more, and collect as t what they packed, in this order."""
    each = [f"open {x} {rank}; {x}: unpack x; {x}: {_named(pack, x)}" for x, rank in zip("BC", RANKS, strict=True)]
    first, second = ("bc"[rank] for rank in order)
    return f"{'; '.join(each)}; carry {first} d axes=PKBHND page=2; collect d {second} t"


def _named(pack: str, letter: str) -> str:
    """Pack under the name of the cache."""
    return pack.replace("pack", f"pack {letter.lower()}", 1)


def _carried(pack: str, unpack: str) -> list[str]:
    """Give parcels in each order of axes and in short pages, and damaged ones."""
    orders = [f"{pack}; carry x y axes={order} page={1 + i % 3}; {unpack}" for i, order in enumerate(APART)]
    return [*orders, *(f"{pack}; carry x y axes={APART[0]} {damage}; {unpack}" for damage in DAMAGES)]


def _elsewhere(other: str) -> str:
    """Bring a parcel to a cache that has rows, and back; neither may disturb the other."""
    return f"pack x; open B {other}; B: append 1; B: unpack x; B: pack y; B: append 1; append 1; unpack y; unpack x"


SIZES = ((1, 2, 2), (2, 4, 1))
"""Rows of a page, pages and sequences of the covered pools."""


def of_pools(most: int, session: Session) -> list[str]:
    """Give the moves to other states of a pool, and a parcel of each sequence that comes to it or to others."""
    pool, found = session.caches["A"], ["pack x sequence=9"]
    for number in sorted(pool.in_use):
        pack = f"pack x sequence={number}"
        new = next(n for n in range(len(pool.in_use) + 1) if n not in pool.in_use)
        found += [f"{pack}; unpack x; drop {new}", *_carried(pack, f"unpack y; drop {new}")]
        other = f"open B page_size=3 pages=2; B: unpack x; B: pack y sequence=0; unpack y; drop {new}"
        found += [
            f"{pack}; {other}",
            f"{pack}; open B kind=ring window=2; B: unpack x; B: pack y; unpack y; drop {new}",
        ]
        found += [f"{pack}; open B kv_heads=1 dtype=f32 page_size=1 pages=2; B: unpack x"]
    return [*page.leading(most, pool), *found]


def of_transfers(session: Session) -> list[str]:
    """Give the moves to other states of a pool with two sequences or transfers at most: rows are sent, and rows are
    expected."""
    pool = session.caches["A"]
    room = len(pool.in_use) + len(pool.in_flight) < 2
    found = ["admit", "expect 1", "expect 3"] if room else []
    for number, one in sorted(pool.in_use.items()):
        found += [f"append 1 sequence={number}", f"truncate {number} {one.length // 2}", f"drop {number}"]
        found += [f"send {number}"] if room else []
    for number, flying in sorted(pool.in_flight.items()):
        found += _arriving(number, flying.length) if flying.expected else _sending(pool, number)
    return [*found, "send 9", "sent 9 x", "lose 9", *_rows_of(2, "arrive 9 x")]


def _sending(pool: Any, number: int) -> list[str]:
    """End a transfer that sends, with its rows or without them; take what arrives for its own."""
    new = next(n for n in range(len(pool.in_use) + 1) if n not in pool.in_use)
    return [f"sent {number} x; unpack x; drop {new}", f"lose {number}", *_rows_of(1, f"arrive {number} x")]


def _arriving(number: int, n: int) -> list[str]:
    """End a transfer that expects n rows: with these, with others, too late, or as if it were sent."""
    damaged = f"carry x y axes=PNBHD page=2 cut=1; arrive {number} y"
    whole = _rows_of(n, f"arrive {number} x", damaged, f"lose {number}; arrive {number} x")
    return [f"lose {number}", f"sent {number} x", *whole, *_rows_of(n + 1, f"arrive {number} x")]


def _rows_of(n: int, *each: str) -> list[str]:
    """Give moves with a parcel x of n rows of another pool."""
    return [f"open B page_size=3 pages=2; B: admit; B: append {n}; B: pack x sequence=0; {move}" for move in each]


def plans() -> list[Plan]:
    """Plan each small cache and pool."""
    alone = [plan(f"parcels {_called(t)}", t, moves, appends_after) for t in STARTS]
    pools = [
        plan(
            f"parcels page page_size={size} pages={pages} sequences<={most}",
            Trace("page", Config(page_size=size, pages=pages)),
            *(partial(of_pools, most), page.continuations),
            look="scribble",
        )
        for size, pages, most in SIZES
    ]
    ranks = [
        plan(f"ranks {_called(t)}", t, of_ranks, appends_after)
        for t in (STARTS[0], Trace("ring", Config(window=2, step=1)))
    ]
    pool = Trace("page", Config(page_size=2, pages=2))
    return [
        *alone,
        *pools,
        *ranks,
        plan("ranks page", pool, of_pools_of_ranks, page.continuations, look="scribble"),
        *layer_parcels.plans(),
        plan("transfers", Trace("page", Config(page_size=2, pages=2)), of_transfers, page.continuations),
    ]


def _called(start: Trace) -> str:
    """Name a cache."""
    window = f" window={start.config.window}" if start.config.window else ""
    return f"{start.kind}{window}{' shifted' if start.config.shifted else ''}"


SAVING = (*("mask",) * 2, *("snapshot", "restore") * 2)
"""Kinds of operations beside those of parcels."""

EXPLORATIONS = (
    *(cache_moves.on_cache(kind, cache_moves.WITH_PARCELS) for kind in caches_with("unpack")),
    *(
        cache_moves.on_cache(
            kind,
            (*cache_moves.WITH_PARCELS, *("mask",) * 2, *("snapshot", "restore") * 2),
            f"all/{kind}",
            "mask",
            "snapshot",
        )
        for kind in caches_with("restore")
    ),
    Exploration("page", ("page",), partial(page.explored, more=("parcel",) * 6), "page"),
    Exploration("transfers", ("page",), partial(page.explored, more=("transfer",) * 12), "page"),
    *layer_parcels.EXPLORATIONS,
)

BROUGHT = "open C page_size=3 pages={apart}; C: admit; C: append {expected}; C: pack v sequence=0"
"""The rows that a transfer expects, packed by another pool."""

TRANSFERS = (
    "send {s}",
    "send {longest}; append 1 sequence={longest}",
    "send {s}; send {s}",
    "send {s}; drop {s}",
    "send {gone}",
    "sent {sending} v; unpack v",
    "sent {sending} v; carry v u axes=BPNHD page=7; unpack u",
    "sent {coming} v",
    "sent {over} v",
    "lose {sending}",
    "lose {coming}",
    "lose {over}",
    "expect {n}",
    "expect {few}; expect {few}",
    "expect 99999",
    f"{BROUGHT}; arrive {{coming}} v",
    f"{BROUGHT}; carry v u axes=BPNHD page=2 cut=1; arrive {{coming}} u",
    "pack v sequence={s}; arrive {sending} v",
    "pack v sequence={s}; arrive {over} v",
    f"{BROUGHT}; lose {{coming}}; append {{n}} sequence={{s}}; arrive {{coming}} v",
    f"{BROUGHT}; lose {{coming}}; send {{s}}; arrive {{coming}} v",
)
"""Moves of rows in flight. They begin and end apart, so that all other moves of a pool lie between. The last
three are late: the reader gave up, and its pages and its number may be another's."""

WALKS = Moves(
    {
        ("growing", "ring", "bounded", "sink"): (
            "pack x; append 1; unpack x; append 1",
            "pack x; carry x y axes=PNBHD page=16; free; unpack y; append {n}",
            "pack x; carry x y axes=BPHND page=7; unpack y; append 1",
            "pack x; carry x y axes=BHDPN cut=1; unpack y",
            "pack x; carry x y axes=PBHND page=5 flip=999; unpack y",
            f"pack {LATE}",
            f"unpack {{{LATE}}}",
        ),
        ("page",): (
            "pack x sequence={s}; carry x y axes=PNBHD page=5; unpack y",
            "pack x sequence={s}; carry x y axes=BHPND cut=2; unpack y",
            "pack x sequence={s}; drop {s}; unpack x",
            f"pack {LATE} sequence={{s}}",
            f"unpack {{{LATE}}}",
            *TRANSFERS,
        ),
        ("layers",): layer_parcels.WALKED,
    }
)
