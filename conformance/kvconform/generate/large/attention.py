"""Large traces of attention and of RoPE: one query, or a few, over many rows of each kind of cache.

What a query makes of thousands of rows of random signs drowns in roundings (ATTN-44). So rows are needles in hay:
the first, the last, those at powers of two, and those at the ends of tiles, pages, splits and windows. A trace
reaches them in a run, and is observed as it attends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random

from kvconform.generate.large.recipe import Recipe, some, unseen
from kvspec.operations.table import caches_with


def _small(random: Random) -> str:
    """Rows of any dtype; six elements hold the needles of a long cache apart."""
    return f"kv_heads=1 k_dim=6 v_dim=6 dtype={random.choice(('f32', 'f16', 'bf16'))}"


REAL_WIDTHS = ((64, 64), (128, 128), (192, 128), (256, 256), (576, 512))
"""Widths of the keys and the values of a head in released models."""

HEADS = {64: 40, 128: 32, 192: 16, 256: 8, 576: 1}
"""Heads of rows that models with keys of such a width have."""

WHOLE = 257
"""The longest prompt whose every row asks. Of a longer one the last rows ask."""

PAIRS = 1 << 14
"""Queries times rows of a block."""

LIGHT = 16384
"""From so many rows on all queries are tiny: one row must not outweigh a needle."""


def _rows(n: int, random: Random, *ends: int) -> list[str]:
    """Appends of n rows, with needles at the boundaries, and at the ends of parts that end before these rows."""
    cuts = sorted({0, n, *(at for at in (*ends, random.randrange(n + 1)) if 0 < at < n)})
    return [f"append {b - a} fill=needle" for a, b in pairwise(cuts)]


def _asked(b: int, random: Random) -> str:
    """How a query asks: heads, splits and queries."""
    light = " queries=tiny" if b > LIGHT else random.choice(("", " queries=tiny"))
    heads = random.choice((1, 2)) if b <= LIGHT else 1
    return f" heads={heads}{random.choice(('', f' splits={random.choice((2, 3, 8, 17))}'))}{light} fill=needle"


def _end(b: int, random: Random, n: int = 1) -> str:
    return f"attend {n}{_asked(b, random)}"


def _block(b: int, random: Random) -> str:
    """A block of queries that asks about b rows with its own."""
    n = max(1, min(b, PAIRS // b, random.choice((2, 5, 33, 64))))
    return _end(b, random, n)


def _one_by_one(b: int, random: Random) -> str:
    """Three steps, the second of which asks about b rows."""
    return "; ".join(_end(b, random) for _ in range(3 if 1 < b <= LIGHT else 1))


def _window(b: int, random: Random) -> str:
    window = min(some(b, random, 16, 100), 65536)
    return f"{_end(b, random, random.choice((1, min(b, 3))))} through causal & window={window}"


def _turned(b: int, random: Random) -> str:
    rope = random.choice(("norm", "neox base=500000", "neox"))
    return f"attend 1{_asked(b, random)} rope={rope}"


Ask = Callable[[int, Random], str]
"""The last operations of a trace over b rows."""


def _queried(fields: Callable[[int, Random], str], ask: Ask, b: int, random: Random) -> str:
    """A cache that holds b rows when it is asked."""
    start, end = fields(b, random), ask(b, random)
    asks = int(end.split()[1]) * (2 if end.count("attend") == 3 else 1)
    tile = max(0, b - 1 - (b - 1) % 32)
    return f"{start}: {unseen(*_reached(b - asks, random, tile, b // 2))}{end}"


def _reached(n: int, random: Random, *ends: int) -> list[str]:
    """Rows unseen; the last of them alone, because it is observed."""
    return [*_rows(n - 1, random, *ends), "append 1 fill=needle"] if n > 1 else _rows(n, random) if n == 1 else []


def _growing(b: int, random: Random) -> str:
    return f"growing {_small(random)} step={random.choice((1, 256, 512, 4096)) if b < 4097 else 4096}"


def _wide(b: int, random: Random) -> str:
    """A cache with heads as wide as those of released models: engines split rows by their bytes."""
    k_dim, v_dim = random.choice(REAL_WIDTHS)
    return f"growing kv_heads=1 k_dim={k_dim} v_dim={v_dim} dtype={random.choice(('f32', 'f16', 'bf16'))} step=256"


def _ring(b: int, random: Random) -> str:
    """A window of b, of fewer or of more."""
    return f"ring {_small(random)} window={some(b, random)} step={random.choice((256, b))}"


def _prompt(b: int, random: Random) -> str:
    """A whole prompt asks, as far as that is not too much; of a longer one the last rows."""
    if b <= WHOLE:
        return f"growing {_small(random)}: attend {b}{_asked(b, random)}; {_end(b, random)}"
    return _queried(_growing, _block, b, random)


def _step_by_step(b: int, random: Random) -> str:
    """Every row asks as it comes; in a small window, so that thousands cost little."""
    window, hay = random.choice((3, 16, 33)), f"attend 1{_asked(b, random)}".replace("needle", "hay")
    return f"ring {_small(random)} window={window}: {unseen(hay, times=b)}{_end(b, random)}; {_end(b, random, 2)}"


def _ahead(b: int, random: Random) -> str:
    """A ring that wraps, and is asked then."""
    reach = _reached(b + random.choice((1, b // 2)), random, b)
    return f"ring {_small(random)} window={b}: {unseen(*reach)}{_end(b, random)}"


def _paged(b: int, random: Random) -> str:
    """A sequence over many pages, and a fork of it that goes on by itself."""
    size = random.choice((64, 100, 256) if b > 1025 else (1, 3, 16, 32))
    reach = [f"{op} sequence=0" for op in _reached(b - 1, random, size, b - 1 - (b - 1) % size)]
    forked = f"fork 0 {max(0, b - 1)}; {_end(b, random)} sequence=1; " if random.random() < 0.5 else ""
    pages = 2 * (b // size) + 6
    start = f"page {_small(random)} page_size={size} pages={pages}: admit; "
    return f"{start}{unseen(*reach)}{forked}{_end(b, random)} sequence=0"


def _forked(b: int, random: Random) -> str:
    """A fork within a page: what it shares ends there."""
    size = random.choice((64, 256) if b > 1025 else (2, 16))
    reach = [f"{op} sequence=0" for op in _reached(b + 2, random, b - 1)]
    fork = f"fork 0 {b - 1}" if b > 1 else "admit"
    end = f"{_end(b, random)} sequence=1; append 1 sequence=0 fill=needle"
    again = f"; {_end(b, random)} sequence=1" if b <= LIGHT else ""
    start = f"page {_small(random)} page_size={size} pages={2 * (b // size) + 8}: admit; "
    return f"{start}{unseen(*reach)}{fork}; {end}{again}"


def _stored(b: int, random: Random) -> str:
    reach = [f"{op} layer=0" for op in _reached(b - 1, random, b // 2)]
    return f"store {_small(random)} layers=1 max_len={b + 2}: {unseen(*reach)}{_end(b, random)} layer=0"


def _captured(b: int, random: Random) -> str:
    """An attend that is captured before rows come, and replayed behind them."""
    how = random.choice(("", " splits=3")) + f" heads={1 if b > LIGHT else 2}"
    light = " queries=tiny" if b > LIGHT else ""
    replay = f"replayattend w fill=needle{light}"
    reach = unseen(*(f"{op} layer=0" for op in _reached(b - 1, random, b // 2)))
    return f"store {_small(random)} layers=1 max_len={b + 3}: captureattend w 0{how}; {reach}{replay}"


def _batched(b: int, random: Random) -> str:
    """Sequences of b rows, of as many, or of few."""
    other = random.choice((b, b, 1, max(1, b // 3)))
    how = random.choice(("", " splits=5")) + (" queries=tiny" if b > LIGHT else "")
    made = f"batch 2; scatter {random.choice(('0', '1'))} {b}"
    made += f"; scatter {1 - int(made.split()[-2])} {other}"
    reach = unseen(*_reached(b, random, b // 2, other))
    return f"store {_small(random)} layers=1 max_len={b + 1}: {reach}{made}; attendbatch 0{how}"


def _bound(b: int, random: Random) -> str:
    """A graph for as many rows as there are, or for more."""
    bounds = f"{b}-{min(2 * b, 99999)}" if random.random() < 0.5 else f"{max(1, b // 2)}-{b + 3}"
    light = " queries=tiny" if b > LIGHT else ""
    ops = unseen(f"prefill {b} fill=needle", "bind")
    return f"bucket {_small(random)} layers=1 bounds={bounds}: {ops}decode fill=needle{light}"


def _heads(b: int, random: Random) -> str:
    shared = random.choice([n for n in (1, 2, 4, 8) if b % n == 0])
    ops = f"append 5 fill=random; attend 1 heads={b}; append 2 fill=random; attend 2 heads={b}"
    return f"growing kv_heads={b // shared} k_dim=8 v_dim=8: {ops}"


def _splits(b: int, random: Random) -> str:
    rows = random.choice((3, 17, 130))
    return f"growing kv_heads=1 k_dim=8 v_dim=8: append {rows} fill=random; attend 1 heads=2 splits={b}"


def _width(field: str, b: int, random: Random) -> str:
    other = {"k_dim": "v_dim", "v_dim": "k_dim"}[field]
    rows = random.choice((3, 9))
    return f"growing kv_heads=1 {field}={b} {other}=8: append {rows} fill=random; attend 1 heads=2"


def _position(b: int, random: Random) -> str:
    return f"growing kv_heads=1 k_dim=8 v_dim=8 dtype=f32: rotate {random.choice((1, 3))} at={b}"


def _stretched(b: int, random: Random) -> str:
    """A position in a context that is longer than a model's first, by each scaling that needs no list."""
    scalings = "linear:8", "ntk:8", "llama3:8:1:4:8192", "yarn:16:8192", "yarn:40:4096:32:1:1", "yarn:32:4096:exact"
    how = f"base={random.choice((10_000, 500_000))} scaling={random.choice(scalings)}"
    return f"growing kv_heads=1 k_dim={random.choice((64, 128))} v_dim=8 dtype=f32: rotate 1 at={b} {how}"


def _pictured(b: int, random: Random) -> str:
    """An image at a position, in the sections of released models."""
    released = (
        "16,24,24 base=1000000",
        "24,20,20:interleaved base=5000000",
        "11,11,10:interleaved dims=64 base=10000000",
    )
    how = f"columns={random.choice((2, 3, 17))} sections={random.choice(released)}"
    return f"growing kv_heads=1 k_dim=128 v_dim=8 dtype=f32: rotate {random.choice((5, 18))} at={b} {how}"


def _rotated(b: int, random: Random) -> str:
    return f"growing kv_heads=1 k_dim=8 v_dim=8 dtype=f32: rotate {b} at={random.choice((0, 5, 4090))}"


ROWS: tuple[tuple[str, tuple[str, ...], Callable[[int, Random], str]], ...] = (
    ("rows of a prompt", ("growing",), _prompt),
    ("rows on a growing", ("growing",), partial(_queried, _growing, _one_by_one)),
    ("rows through a window", ("growing",), partial(_queried, _growing, _window)),
    ("rows on a ring", ("ring",), partial(_queried, _ring, _block)),
    ("window of a ring", ("ring",), _ahead),
    ("rows on a page", ("page",), _paged),
    ("rows behind a fork", ("page",), _forked),
    ("rows on a store", ("store",), _stored),
    ("rows of a captured attend", ("store",), _captured),
    ("rows of a batch", ("store", "batch"), _batched),
    ("rows on a bucket", ("bucket",), _bound),
    ("rows turned", ("growing", "rope"), partial(_queried, _growing, _turned)),
)
"""What is met, the chapters beside, and how: rows that queries are asked about, on each kind of cache."""

RECIPES = (
    *(Recipe("attention", name, make, beside=beside) for name, beside, make in ROWS),
    Recipe("attention", "rows of wide heads", partial(_queried, _wide, _end), most=8193, beside=("growing",)),
    Recipe("attention", "rows one by one", _step_by_step, most=65, beside=("ring",)),
    Recipe("attention", "heads", _heads, most=64, beside=("growing",)),
    Recipe("attention", "splits", _splits, most=129, beside=("growing",)),
    *(
        Recipe("attention", f, partial(_width, f), most=577, widths=True, beside=("growing",))
        for f in ("k_dim", "v_dim")
    ),
    Recipe("rope", "position", _position, on=caches_with("rotate")),
    Recipe("rope", "position of a long context", _stretched, most=131_072, on=caches_with("rotate")),
    Recipe("rope", "position of an image", _pictured, most=131_072, on=caches_with("rotate")),
    Recipe("rope", "rows", _rotated, most=1025, on=caches_with("rotate")),
)
