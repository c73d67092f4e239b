"""Large traces of parcels and of pages in flight: many rows, many transfers at once, many one after another. Of
layers many rows, many layers, and many rows of an encoder."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random

from kvconform.generate.large.beside import paged
from kvconform.generate.large.calls import SEVERAL, SLOW
from kvconform.generate.large.recipe import NARROW, Recipe, chunks, some, unseen
from kvspec.operations.texts import ORDERS

FIELDS = {
    "growing": "",
    "ring": " window={size}",
    "bounded": " max_len={most}",
    "sink": " window={size} sinks=2 beside=1",
}
"""Fields of caches of one sequence."""


def _packed(kind: str, b: int, random: Random) -> str:
    """Pack b rows. The cache goes on, then takes them back in another layout."""
    fields = FIELDS[kind].format(size=max(2, some(b, random, 4)), most=b + 3)
    carried = f"carry x y axes={random.choice(ORDERS)} page={some(b, random, 1, 16)}"
    between = random.choice(("append 2", "free", "free; append 1"))
    reach = unseen(*chunks(b - 1, random), "append 1")
    return f"{kind} {NARROW}{fields}: {reach}pack x; {between}; {carried}; unpack y; append 1; append 2; view"


def _of_layers(b: int, random: Random) -> str:
    """Pack b rows of unlike layers. The cache goes on, then takes them back: layers in another order and layout."""
    window, chunk = (max(2, some(b, random, 4)) for _ in range(2))
    carried = f"carry x y axes={random.choice(ORDERS)} page={some(b, random, 1, 16)} layers=2,0,3,1"
    between = random.choice(("append 2", "free", "free; append 1"))
    reach = unseen(*chunks(b - 1, random), "append 1")
    start = f"layers {NARROW} of=full,window:{window},chunk:{chunk},conv:3 layers=4"
    return f"{start}: {reach}pack x; {between}; {carried}; unpack y; append 1; append 2"


def _refused_of_layers(b: int, random: Random) -> str:
    """Reach b rows in layers that can go back. A parcel that is damaged, or lacks a layer, changes none of them."""
    damaged = f"carry x y axes={random.choice(ORDERS)} page={some(b, random, 1, 16)} cut=1; unpack y"
    lacking = f"carry x z axes={random.choice(ORDERS)} layers=1; unpack z"
    start = f"layers {NARROW} of=full,chunk:{2 * b + 9},share:0 layers=2"
    return f"{start}: {unseen(*chunks(b, random))}pack x; {damaged}; {lacking}; append 1; unpack x; append 1"


VIEWS = ("full", "window:2", "chunk:2", "sinks:1:1", "conv:2", "state")
"""What layers see of which there are many."""


def _many_layers(b: int, random: Random) -> str:
    """Pack b layers. Half of them come back in one parcel, and the others, the last first, in another layout."""
    of, first = ",".join(random.choice(VIEWS) for _ in range(b)), -(-b // 2)
    halves = (range(first), range(b - 1, first - 1, -1))
    ways = zip("yz", halves, random.sample(ORDERS, 2), strict=True)
    carried = [f"carry x {name} axes={axes} page=2 layers={_listed(half)}" for name, half, axes in ways if half]
    parcel = "collect z y w; unpack w" if b > 1 else "unpack y"
    return (
        f"layers {NARROW} of={of} layers={b}: append 3; pack x; append 1; {'; '.join(carried)}; {parcel}; append 1"
    )


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _encoded(b: int, random: Random) -> str:
    """Pack b rows of an encoder beside few of tokens; they come back in the place of others, or of none."""
    between = random.choice(("append 2", "free", "free; encode 2"))
    carried = f"carry x y axes={random.choice(ORDERS)} page={some(b, random, 1, 16)} layers=2,1,0"
    start = f"layers {NARROW} of=cross,full,cross layers=1: encode {b}; append 2"
    return f"{start}; pack x; {between}; {carried}; unpack y; append 1"


def _called_of_layers(b: int, random: Random) -> str:
    """Pack layers; b times give them other rows, and take back what they had."""
    axes = (random.choice(ORDERS) for _ in range(b))
    each = [f"free; append 3; carry x y axes={a} page=2 layers=2,1,0; unpack y; append 1" for a in axes]
    start = f"layers {SEVERAL} of=window:2,state,full layers=3: append 3; pack x"
    return f"{start}; {'; '.join(each)}; pack z; unpack z; append 1"


def _flying(b: int, random: Random) -> str:
    """Send b rows, and bring them to pages that were taken for them; meanwhile their sequence becomes another."""
    size = random.choice((1, 2, 4, 16)) if b < 1025 else 16
    other = random.choice(("append 1 sequence=0", f"truncate 0 {b // 2}; append 2 sequence=0", "drop 0; admit"))
    ends = f"sent 0 x; arrive 1 x; append 1 sequence=1; truncate 1 {b // 2}; append 1 sequence=1"
    reach = unseen("admit", *paged(b, random))
    return f"page {NARROW} page_size={size} pages={2 * (b // size) + 6}: {reach}send 0; expect {b}; {other}; {ends}"


def _at_once(b: int, random: Random) -> str:
    """Begin b transfers; then the last ends and one in the middle, and their numbers are given again."""
    begun = [EXPECTS[0] if n % 3 == 2 else SENDS[0] for n in range(b)]
    ends = [(EXPECTS if n % 3 == 2 else SENDS)[1].format(n=n) for n in dict.fromkeys((b - 1, random.randrange(b)))]
    reach = unseen("admit", "append 3 sequence=0", *begun[:-1])
    after = "expect 1; send 0; append 1 sequence=0; drop 0"
    return f"page {NARROW} page_size=2 pages={b + 12}: {reach}{'; '.join([begun[-1], *ends, after])}"


SENDS = ("send 0", "sent {n} x; unpack x")
EXPECTS = ("expect 2", "lose {n}")
"""How transfers begin and end that are in flight together."""


def _in_turn(b: int, random: Random) -> str:
    """Send rows, and expect some, b times; nobody looks until the end."""
    again = f"send 0; append 1 sequence=0; {random.choice(('sent 0 x', 'lose 0'))}; truncate 0 3"
    ops = f"{unseen(again, 'expect 2', 'lose 0', times=b)}send 0; append 1 sequence=0; sent 0 x; unpack x"
    return f"page {NARROW} page_size={random.choice((1, 2, 4))} pages=12: admit; append 3 sequence=0; {ops}"


def _called(b: int, random: Random) -> str:
    """Bring the rows of one of two sequences to a third, b times, beside a transfer that stays; look each time."""
    each = "; ".join(_brought(i % 2, 3 - i % 2, random.random() < 0.5) for i in range(b))
    made = "admit; admit; append 3 sequence=0; append 2 sequence=1; send 1"
    return f"page {SEVERAL} page_size=2 pages=24: {made}; {each}; sent 0 y; unpack y"


def _brought(sequence: int, n: int, first: bool) -> str:
    """Bring its n rows to another sequence. With `first`, what expects them begins first."""
    begun, (sends, expects) = [f"send {sequence}", f"expect {n}"], (2, 1) if first else (1, 2)
    meanwhile = f"append 1 sequence={sequence}; sent {sends} x; arrive {expects} x; truncate {sequence} {n}; drop 2"
    return "; ".join((*(begun[::-1] if first else begun), meanwhile))


RECIPES = (
    *(
        Recipe("parcels", f"rows packed from a {kind}", partial(_packed, kind), most=2049, beside=(kind,))
        for kind in FIELDS
    ),
    Recipe("parcels", "rows in flight", _flying, most=4097, beside=("page",)),
    Recipe("parcels", "transfers at once", _at_once, most=513, beside=("page",)),
    Recipe("parcels", "transfers in turn", _in_turn, 513, 255, beside=("page",)),
    Recipe("parcels", "rows packed of layers", _of_layers, most=2049, beside=("layers",)),
    Recipe("parcels", "rows before parts that are refused", _refused_of_layers, most=1025, beside=("layers",)),
    Recipe("parcels", "layers packed", _many_layers, most=65, beside=("layers",)),
    Recipe("parcels", "rows packed of an encoder", _encoded, most=1025, beside=("layers",)),
    Recipe("parcels", "calls of parcels of layers", _called_of_layers, at=(SLOW,), beside=("layers",)),
    Recipe("parcels", "calls of transfers", _called, at=(SLOW,), beside=("page",)),
)
