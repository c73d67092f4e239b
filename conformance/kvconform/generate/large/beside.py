"""Large traces on stores, pools of pages, buffers, buckets and blocks."""

from __future__ import annotations

from random import Random

from kvconform.generate.large.recipe import NARROW, Recipe, chunks, unseen


def _buffer(b: int, random: Random) -> str:
    layout, at = random.choice(("token", "head")), random.choice((0, b - 1))
    ops = f"copy {min(b - at, 600)} {at}; copy 1 0; copy 1 {b - 1}; copy 2 {b - 1}"
    return f"copy {NARROW} capacity={b} layout={layout}: {ops}"


def _store(b: int, random: Random) -> str:
    ops = f"{unseen(*chunks(b - 1, random), 'append 1')}append 1; rollback {b // 2}; append 1; setlength 0 {b}"
    return f"store {NARROW} layers={random.choice((1, 2))} max_len={b}: {ops}; fingerprint {b - 1}"


def _layers(b: int, random: Random) -> str:
    some_ = random.randrange(b)
    ops = f"append 2; append 1 layer={b - 1}; append 1 layer={some_}; setlength {some_} 1; append 2 layer={some_}"
    return f"store {NARROW} layers={b} max_len=4: {ops}; rollback 1; append 1"


def _sequences(b: int, random: Random) -> str:
    one = random.randrange(b)
    ops = f"append 2; batch {b} most={b}; scatter {b - 1} 2; scatter {one} 1; step; step"
    return f"store {NARROW} layers=1 max_len=5: {ops}; rollback 1 sequence={one}; step"


def _replayed(b: int, random: Random) -> str:
    """Capture a step and replay it `b` times."""
    m = random.choice((1, 3))
    ops = f"append 1; batch {m}; step; capture c; {unseen('replay c', times=b)}step; replay c"
    return f"store {NARROW} layers=1 max_len={b + 4}: {ops}; rollback 1 sequence=0; step"


def _reused(b: int, random: Random) -> str:
    """Admit, share and drop sequences, `b` times."""
    ops = "admit; append 3 sequence=0; fork 0 1; append 1 sequence=1; truncate 0 2; drop 1; drop 0"
    end = "admit; append 3 sequence=0; fork 0 2; append 1 sequence=1"
    return f"page {NARROW} page_size={random.choice((1, 2, 4))} pages=8: {unseen(ops, times=b)}{end}"


def _page(b: int, random: Random) -> str:
    more = random.choice((1, 2, 5))
    ops = f"admit; {unseen(*paged(b, random))}append 1 sequence=0; fork 0 {b + 1}"
    return (
        f"page {NARROW} page_size={b} pages=4: {ops}; append {more} sequence=1; truncate 0 {b}; append 1 sequence=0"
    )


def paged(n: int, random: Random) -> list[str]:
    """Appends of n rows to the first sequence, the last of them of one row."""
    return [f"{op} sequence=0" for op in (*chunks(n - 1, random), "append 1") if op]


def _pages(b: int, random: Random) -> str:
    """A sequence over this many pages, the last one half full."""
    size = random.choice((1, 2, 3)) if b < 4097 else 1
    rows = b * size
    ops = f"admit; {unseen(*paged(rows, random))}append 1 sequence=0; truncate 0 {rows // 2}"
    return f"page {NARROW} page_size={size} pages={b}: {ops}; append 1 sequence=0"


def _admitted(b: int, random: Random) -> str:
    """This many sequences at once; some share pages."""
    made = [f"admit; append 1 sequence={i}" if i < 2 or random.random() < 0.5 else "fork 0 1" for i in range(b - 1)]
    return f"page {NARROW} page_size=2 pages={b + 2}: {unseen(*made)}admit; append 2 sequence={b - 1}; drop 0"


def _bound(b: int, random: Random) -> str:
    bounds = f"{max(1, b // 2)}-{b}" if b > 1 else "1-2"
    ops = f"{unseen(f'prefill {b - 1}', 'bind')}decode; decode; sync" if b > 1 else "prefill 1; bind; sync"
    return f"bucket {NARROW} layers=1 bounds={bounds}: {ops}"


def _block(b: int, random: Random) -> str:
    """Two sequences, one of them of b rows; then the other is longer."""
    side, few = random.choice(("left", "right")), random.choice((0, 1, 3))
    feed = f"feed {few},{b}" if b <= 513 else unseen(f"feed {few},{b}", "feed 1,0").rstrip("; ")
    return f"ragged {NARROW} batch=2 padding={side}: {feed}; trim 0,1; feed 1,1; filter 1,0; feed 2,0"


def _outgrown(b: int, random: Random) -> str:
    """Two sequences over a window of b rows, one of which outgrows it."""
    side, few = random.choice(("left", "right")), random.choice((0, 1, 3))
    feed = f"feed {few},{b}" if b <= 513 else unseen(f"feed {few},{b - 1}", "feed 0,1").rstrip("; ")
    return f"ragged {NARROW} batch=2 padding={side} window={b}: {feed}; feed 1,1; feed 1,1; filter 1,0; feed 1,2"


RECIPES = (
    Recipe("copy", "capacity", _buffer),
    Recipe("store", "max_len", _store),
    Recipe("store", "layers", _layers, most=513),
    Recipe("batch", "sequences", _sequences, most=513, beside=("store",)),
    Recipe("batch", "times replayed", _replayed, 2049, 255, beside=("store",)),
    Recipe("page", "times admitted", _reused, 513, 255),
    Recipe("page", "page_size", _page, most=32769),
    Recipe("page", "pages", _pages, most=8193),
    Recipe("page", "sequences", _admitted, most=513),
    Recipe("bucket", "bound", _bound, most=4097),
    Recipe("ragged", "rows", _block, most=8193),
    Recipe("ragged", "window", _outgrown, most=8193),
)
