"""Large traces on caches of one sequence, with snapshots, masks and rounds."""

from __future__ import annotations

from functools import partial
from random import Random

from kvconform.generate.large.recipe import NARROW, Recipe, append, chunks, some, unseen

FEW = 1025
"""The largest append that is observed: its mask has as many rows as columns."""

PAIRS = 1 << 20
"""Queries and rows that an observed mask has at most."""


def _over(b: int, random: Random, window: int = 0) -> str:
    """Reach b - 1 rows unseen, then look at every row over the boundary, go back over it, and on. A row beyond a
    window, ask for the way back."""
    back = f"rewind {b - 1}; append 1; " if b > 1 and (not window or b <= window) else ""
    beyond = f"append 1; ask {b}; append 1" if window == b else "append 2"
    return f"{unseen(*chunks(b - 2, random), 'append 1')}append 1; {back}{beyond}; view"


def _step(kind: str, b: int, random: Random) -> str:
    window = f" window={some(b, random)}" if kind == "ring" else ""
    times = 1 if b > 4097 else random.choice((1, 2, 3))
    ends = unseen(*chunks(b * times - 2, random), "append 1")
    return f"{kind} {NARROW} step={b}{window}: append 1; {ends}append 1; append 1; append 2; view"


def _offset(kind: str, b: int, random: Random) -> str:
    window = random.choice((3, 16, 100)) if kind == "ring" else 0
    step = some(b, random, 1, 16, 256) if b < 4097 else random.choice((256, 512, 4096))
    fields = f" window={window}" if window else ""
    return f"{kind} {NARROW} step={step}{fields}: {_over(b, random, window)}"


def _decoded(kind: str, b: int, random: Random) -> str:
    """Row after row, thousands of times."""
    fields = "" if kind == GROW else f" window={random.choice((3, 7, 16))}"
    fields += " sinks=2 beside=1" if kind == "sink" else ""
    step = random.choice((1, 16, 256, 512)) if b < 2047 else 512
    return f"{kind} {NARROW} step={step}{fields}: append 2; {unseen('append 1', times=b)}append 1; view"


def _read(kind: str, b: int, random: Random) -> str:
    """Read this many times, and hold what was read."""
    window = " window=5" if kind == RING else ""
    ops = "; ".join(["append 3", *["view"] * b, "append 1", "scribble", "append 1", "view"])
    return f"{kind} {NARROW}{window} step={random.choice((1, 16))}: {ops}"


def _chunk(kind: str, b: int, random: Random) -> str:
    """A prompt of b rows, or a chunk of b rows behind others."""
    window = f" window={some(b, random, 4)}" if kind == "ring" else ""
    before = random.choice(("", "append 1; ", "append 3; append 1; "))
    long = append(b) + "; " if b <= FEW else unseen(append(b), "append 1")
    return f"{kind} {NARROW}{window}: {before}{long}append 1; append 2; view"


def _back(kind: str, b: int, random: Random) -> str:
    """A rewind of b rows."""
    left, window = random.choice((0, 1, 5)), f" window={b + 9}" if kind == "ring" else ""
    reach = unseen(*chunks(b + left, random), f"rewind {left}")
    return f"{kind} {NARROW}{window} step={some(b, random, 256)}: {reach}append 1; append 2; view"


def _window(kind: str, b: int, random: Random) -> str:
    """Fill the window, wrap, take a chunk, and go on."""
    step = some(b, random, 1, 256) if b < 4097 else random.choice((256, 4096))
    chunk = random.choice((2, 3, min(b + 1, FEW, PAIRS // (b + FEW))))
    around = unseen("append 1", times=b - 1) if 2 < b < 600 else ""
    sinks = f" sinks={random.choice((1, 4))} beside=1" if kind == "sink" else ""
    start = f"{kind} {NARROW} step={step} window={b}{sinks}: "
    return f"{start}{_over(b, random, b)}; {around}append 1; append {chunk}; append 1; view"


def _room(b: int, random: Random) -> str:
    return f"bounded {NARROW} max_len={b}: {_full(b, random)}append 1; view; rewind 0; append 1"


def _full(b: int, random: Random) -> str:
    return unseen(*chunks(b - 1, random), "append 1")


def _sinks(b: int, random: Random) -> str:
    window = random.choice((2, 5))
    ops = f"{_full(b + window - 1, random)}append 1; append 1; append 1; append 2; view"
    return f"sink {NARROW} sinks={b} window={window} beside=1: {ops}"


def _kept(b: int, random: Random) -> str:
    """Choose of b rows each second or third, and of these the newest half; go on until rows are dropped."""
    sinks, step, window = random.choice((1, 4)), random.choice((2, 3)), b + 1
    first = f"keep 0-{b - 1}/{step}"
    again = f"keep 0,{(b - 1) // 2 // step * step}-{b - 1}/{step}" if b > 4 * step else "keep 0"
    ops = f"{_full(b, random)}append 1; {first}; view; append 1; {again}; append 2; append 1; view"
    return f"sink {NARROW} sinks={sinks} window={window} beside=1: {ops}"


def _shape(field: str, kind: str, b: int, random: Random) -> str:
    """Few rows of another geometry: to the bit, so that none is like another."""
    sizes = {"kv_heads": 1, "k_dim": 5, "v_dim": 5} | {field: b}
    window = {"window": 3} if kind == "ring" else {}
    fields = " ".join(f"{k}={v}" for k, v in (sizes | window).items())
    return (
        f"{kind} {fields} step={random.choice((1, 2, 3))}: append 2 fill=bits; append 1 fill=bits; append 3; view"
    )


def _saved(kind: str, b: int, random: Random) -> str:
    """A snapshot of b rows, and of those from a late start."""
    window, start = (f" window={some(b, random)}", 0) if kind == "ring" else ("", random.choice((0, b // 2, b - 1)))
    ops = f"{_full(b, random)}snapshot s {start}; append 2; snapshot t; append 1"
    back = f"; rewind {start}; restore s {b}; append 1" if kind == "growing" else f"; restore s {b}; append 1"
    return f"{kind} {NARROW}{window}: {ops}{back}; restore t {b + 2}; append 1"


def _alive(kind: str, b: int, random: Random) -> str:
    """Make `b` snapshots; restore some of them, in any order."""
    window = " window=3" if kind == "ring" else ""
    made = [f"append 1; snapshot s{i}" for i in range(b)]
    order = random.sample(range(b), min(b, 6))
    restored = "; ".join(f"restore s{i} {i + 1}; append 1" for i in order)
    return f"{kind} {NARROW}{window}: {unseen(*made)}append 1; {restored}"


def _masked(b: int, random: Random) -> str:
    """A window of the mask, and as many rows as it, or a few more."""
    rows = b + random.choice((-1, 0, 1, 3))
    return f"growing {NARROW}: {_full(max(1, rows - 2), random)}append 2; mask causal & window={b}"


def _drafted(kind: str, b: int, random: Random) -> str:
    window = f" window={some(b, random)}" if kind == "ring" else ""
    before, kept = random.choice((1, 4)), random.choice((0, 1, b // 2, b))
    round_ = f"speculate r A; run 1 {{draft r {b}; draft r 1}}; commit r {kept}"
    return f"{kind} {NARROW}{window}: append {before}; {round_}; append 1; append 2; view"


def _rewound(kind: str, b: int, random: Random) -> str:
    """Append rows and rewind over them, `b` times."""
    window = " window=6" if kind == "ring" else ""
    ops = "append 2; rewind 1; append 1; rewind 0"
    return (
        f"{kind} {NARROW}{window} step={random.choice((1, 2, 256))}: {unseen(ops, times=b)}append 3; append 1; view"
    )


def _in_turn(kind: str, b: int, random: Random) -> str:
    """Make, restore and close a snapshot, `b` times."""
    window = f" window={random.choice((2, 8))}" if kind == "ring" else ""
    ops = f"append 1; snapshot s; append {random.choice((1, 2))}; restore s 3; close s; free; append 2"
    end = "append 1; snapshot s; append 1; restore s 3; view"
    return f"{kind} {NARROW}{window}: append 2; {unseen(ops, times=b)}{end}"


def _rounds(kind: str, b: int, random: Random) -> str:
    """Open and commit a round of speculation, `b` times."""
    window = " window=4" if kind == "ring" else ""
    ops = f"speculate r A; draft r 2; draft r 1; commit r {random.choice((0, 1, 2))}"
    return f"{kind} {NARROW}{window}: append 2; {unseen(ops, times=b)}append 1; append 2; view"


def _freed(kind: str, b: int, random: Random) -> str:
    """Fill and free a cache, `b` times: afterwards it holds as much as when it was opened."""
    window = " window=6" if kind == "ring" else ""
    step, ops = random.choice((1, 2, 256)), f"append {random.choice((2, 9))}; append 1; free"
    return f"{kind} {NARROW}{window} step={step}: {unseen(ops, times=b)}append 3; append 1; free"


GROW, RING = "growing", "ring"

LIVES = (4097, 8193)
"""Long lives: a counter of 12 or 13 bits comes to its end. Each size is met once, because they take long."""

RECIPES = (
    *(Recipe(kind, "step", partial(_step, kind)) for kind in (GROW, RING)),
    *(Recipe(kind, "offset", partial(_offset, kind)) for kind in (GROW, RING)),
    *(Recipe(kind, "rows one by one", partial(_decoded, kind), most=2049) for kind in (GROW, RING, "sink")),
    *(
        Recipe(kind, f"rows one by one, {n} at least", partial(_decoded, kind), n, n)
        for kind in (GROW, RING, "sink")
        for n in LIVES
    ),
    *(Recipe(kind, "times read", partial(_read, kind), most=257) for kind in (GROW, RING)),
    *(Recipe(kind, "rows of an append", partial(_chunk, kind)) for kind in (GROW, RING)),
    *(Recipe(kind, "rows rewound", partial(_back, kind)) for kind in (GROW, RING)),
    *(Recipe(kind, "times appended and rewound", partial(_rewound, kind), 1025, 255) for kind in (GROW, RING)),
    *(Recipe("snapshot", f"times on a {k}", partial(_in_turn, k), 513, 255, beside=(k,)) for k in (GROW, RING)),
    *(
        Recipe("mem", f"times freed, {kind}", partial(_freed, kind), 513, 255, beside=(kind,))
        for kind in (GROW, RING)
    ),
    *(Recipe("draft", f"times on a {k}", partial(_rounds, k), 513, 255, beside=(k,)) for k in (GROW, RING)),
    *(Recipe(kind, "window", partial(_window, kind)) for kind in (RING, "sink")),
    Recipe("sink", "sinks", _sinks, most=8193),
    Recipe("sink", "rows kept", _kept, most=8193),
    Recipe("bounded", "max_len", _room),
    *(Recipe(kind, "kv_heads", partial(_shape, "kv_heads", kind), most=1025) for kind in (GROW, RING)),
    *(Recipe(kind, "batch", partial(_shape, "batch", kind), most=1025) for kind in (GROW, RING)),
    *(Recipe(GROW, f, partial(_shape, f, GROW), most=4097, widths=True) for f in ("k_dim", "v_dim")),
    *(Recipe("snapshot", f"rows on a {k}", partial(_saved, k), most=32769, beside=(k,)) for k in (GROW, RING)),
    *(Recipe("snapshot", f"alive on a {k}", partial(_alive, k), most=257, beside=(k,)) for k in (GROW, RING)),
    Recipe("mask", "window", _masked, most=32769, beside=(GROW,)),
    *(Recipe("draft", f"rows on a {k}", partial(_drafted, k), most=8193, beside=(k,)) for k in (GROW, RING)),
)
