"""Histories that aim at what an engine declares: the ends of blocks, chunks and windows, a full pool, drafts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kvadapters.probe.views import View
from kvadapters.serving.driver import Declared
from kvspec.serving.history import MOST_NEW, History, history

BLOCK, CHUNK, SEQUENCES = 16, 64, 4
"""What is taken where an engine declares nothing."""
MOST_FILLING, OFTEN = 40, 12
"""Requests that may be needed to fill a pool once, or often; a larger pool is not filled."""
LIFE = "SERVE-17"
"""The clause of random lives."""


@dataclass(frozen=True)
class Aim:
    """What histories aim at: sizes of an engine, windows of a probe's layers, and how many ids there are."""

    declared: Declared
    windows: tuple[int, ...]
    ids: int

    @property
    def block(self) -> int:
        """Rows of a block."""
        return min(self.declared.block or BLOCK, self.longest // 3)

    @property
    def chunk(self) -> int:
        """Tokens that are computed at once."""
        return self.declared.chunk or CHUNK

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt: all of them differ, and the engine takes it."""
        rows = self.declared.blocks * self.declared.block or self.ids
        return max(4, min(self.ids - 24, (self.declared.longest or self.ids) - 24, rows - 24))

    def ends(self, least: int = 1) -> list[int]:
        """Lengths at the end of a block, one before it and one behind it."""
        found = {n * self.block + d for n in (1, 2, 3) for d in (-1, 0, 1)}
        return sorted(n for n in found if least <= n <= self.longest)

    def bears(self, history: History) -> bool:
        """Tell whether an engine can be asked this: see `SPARED`."""
        whole = any(len(step.parts) == 1 and str(step.parts[0]) == step.parts[0].source for step in history)
        return not (whole and "no-whole" in self.declared.can)

    def filling(self) -> int:
        """Requests of the longest prompt that fill the pool; 0 if its size is not known or too large."""
        rows = self.declared.blocks * self.declared.block
        needed = -(-rows // self.longest) + 1 if rows else 0
        return needed if needed <= MOST_FILLING else 0


def aim(declared: Declared, layers: Sequence[View], ids: int) -> Aim:
    """Aim at an engine and a probe."""
    return Aim(declared, tuple(sorted({view.size for view in layers if view.size})), ids)


Recipe = Callable[[Aim], Iterable[str]]


def _alone(a: Aim) -> Iterator[str]:
    for n in sorted({1, 2, *a.ends(), *(w + d for w in a.windows for d in (-1, 0, 1) if w + d > 0)}):
        yield f"ask a {min(n, a.longest)}"
    yield f"ask a {a.block + 3} new={a.block + 2}"


def _again(a: Aim) -> Iterator[str]:
    long = min(3 * a.block + 2, a.longest)
    yield f"ask a {long}; ask b a[:{2 * a.block}] 3; ask c a[:{a.block}] 5 new=3; ask d a[:{2 * a.block}] 4 new=2"
    yield f"ask a {long}; ask b a 3; ask c b 2; ask d a 4"


def _other_context(a: Aim) -> Iterator[str]:
    b = a.block
    yield f"ask a {2 * b} 3; ask b {2 * b} 3; ask c b[:{b}] a[{b}:{2 * b}] 3"
    yield f"ask a {2 * b} 3; ask b {b} a[:{b}] 3; ask c 1 a[:{2 * b - 1}] 3"
    yield f"ask a {2 * b} 3; ask b a[{b}:{2 * b}] 3; ask c a[{b}:{2 * b}] a[:{b}] 3"
    yield f"ask a {3 * b} 1; ask b a[:{b}] {b + 1}; ask c b[:{2 * b}] a[{2 * b}:{3 * b}] 2"
    if b > 1:  # the same tokens in another order
        yield f"ask a {2 * b} 1; ask b a[{b - 1}:{b}] a[:{b - 1}] a[{b}:{2 * b}] 2"
    for at in sorted({0, 1, b - 1, b, 2 * b - 1}):
        yield f"ask a {3 * b}; ask b a[:{at}] 1 a[{at + 1}:] 2; ask c a[:{b}] 2"


def _ends(a: Aim) -> Iterator[str]:
    for shared in reversed(a.ends()):
        long = min(shared + a.block, a.longest)
        yield f"ask a {long}; ask b a[:{shared}] 1; ask c a[:{shared}] {a.block} new=2; ask d a[:{shared}] 2 new=2"
    for shared in (1, 2):  # an engine may keep what it can go back to only at some places
        yield f"ask a {2 * a.block} new=9; ask b a[:{shared}] 5 new=2; ask c {a.block}; ask d b[:{shared}] 9 new=2"


def _whole(a: Aim) -> Iterator[str]:
    for n in reversed(a.ends(2)):
        yield f"ask a {n}; ask b a[:{n}]; ask c a[:{n}] new=2; ask d a[:{n - 1}]"
    yield f"ask a {a.block} new=2; ask b a; ask c a new=2"


def _windows(a: Aim) -> Iterator[str]:
    for w in a.windows:
        more = min(w + 4, MOST_NEW)  # the window of the answer's last rows no longer shows the prompt
        for n in range(2, 9):
            yield f"ask a {n} new={more}; ask b a[:{n // 2}] 5 new=2; ask c {n} new={more}; ask d c[:1] 5 new=2"
        long = min(w + 4 * a.block, a.longest)
        for shared in sorted({a.block, w // a.block * a.block, w + a.block, long - a.block, long - 1} - {0}):
            if shared < long:
                yield f"ask a {long} new=3; ask b a[:{shared}] 2 new=3; ask c a[:{shared}] 1 new={min(w + 2, 16)}"
        yield f"ask a {2 * a.block} new={min(w + a.block + 1, MOST_NEW)}; ask b a[:{a.block}] 3; ask c a 3 new=2"


def _continued(a: Aim) -> Iterator[str]:
    for n in (a.block - 2, 2 * a.block - 1, a.block + 1):
        if n > 0:
            yield f"ask a {n} new={a.block + 2}; ask b a 1 new=3; ask c b 2 new=2; ask d a[:{n + a.block}] 3"


def _salts(a: Aim) -> Iterator[str]:
    b = a.block
    yield f"ask a {2 * b} 3 salt=x; ask b a[:{2 * b}] 3 salt=y; ask c a[:{2 * b}] 3; ask d a[:{2 * b}] 2 salt=x"
    yield f"ask a {2 * b} 3; ask b a[:{2 * b}] 3 salt=x; ask c a[:{2 * b}] 2 salt=x"


def _evictions(a: Aim) -> Iterator[str]:
    if filling := a.filling():
        yield from _takes_the_rest(a)
        fill = "; ".join(f"ask x{i} {a.longest}" for i in range(filling))
        b = a.block
        yield f"ask a {2 * b + 1}; {fill}; ask b a[:{2 * b}] 3 new=2; ask c a[:{b}] 3"
        yield f"ask a {2 * b + 1}; {fill}; ask b x0[:{b}] a[{b}:{2 * b}] 3; ask c x{filling - 1}[:{2 * b}] 2 new=2"
        half = "; ".join(f"ask x{i} {a.longest}; ask y{i} a[:{b}] 2" for i in range(filling))
        yield f"ask a {2 * b + 1}; {half}; ask b a[:{2 * b}] 3"
        yield from _parts_evicted(a, max(1, filling // 4)) if filling <= OFTEN else ()


def _takes_the_rest(a: Aim) -> Iterator[str]:
    """Ask for a prefix, and for so much behind it, its own tokens again, that the request takes nearly all blocks
    there are. Those that it was found in are not among them."""
    shared, rows = 2 * a.block, a.declared.blocks * a.declared.block
    more = min(rows, a.declared.longest or rows) - 24 - a.longest
    if a.longest > shared and more <= a.longest:
        taking = f"ask b a[:{shared}] {a.longest - shared}" + f" b[:{more}]" * (more > 0)
        yield f"ask a {shared + 1}; {taking}; ask c a[:{shared}] 2"
        yield f"ask a {shared + 1}; ask x {a.longest // 2}; {taking}"


def _parts_evicted(a: Aim, fillers: int) -> Iterator[str]:
    """Evict a part of a text, ask for a prefix of it, and again: of its rows some are there, some are new, and
    groups of layers have other ones."""
    for long, blocks in ((a.longest, (3, 2, 1)), (3 * a.longest // 4, (1, 2, 3))):
        rounds = (
            f"{'; '.join(f'ask x{i}_{n} {long}' for n in range(fillers))}; ask c{i} a[:{blocks[i % 3] * a.block}] 1"
            for i in range(6)
        )
        yield f"ask a {min(3 * a.block + 1, a.longest)}; {'; '.join(rounds)}"


def _preemptions(a: Aim) -> Iterator[str]:
    rows = a.declared.blocks * a.declared.block
    many = min(a.declared.sequences or SEQUENCES, 16)
    if not rows or rows // many > a.longest:
        return
    for share in (1.0, 0.8, 0.6, 0.45):  # several groups of layers may have blocks of their own
        prompt, new = max(1, int(rows // many * share) - 1), min(2 * a.block + 2, MOST_NEW)
        begun = "; ".join(f"submit x{i} {max(1, prompt - i)} new={new}" for i in range(many))
        yield f"{begun}; wait; ask b x0[:{a.block}] 3; ask c x{many - 1} 2"
        if (
            "samples" in a.declared.can and many > 3 and share in (0.8, 0.45)
        ):  # a sample is preempted, and another one is not
            pair = f"submit y {max(1, prompt - 1)} samples=2 new={new}"
            yield f"submit x {prompt} new={new}; {pair}; submit z {prompt} new={new}; wait; ask b y 2; ask c x 2"


def _chunks(a: Aim) -> Iterator[str]:
    found = {n * a.chunk + d for n in (1, 2) for d in (-1, 0, 1)} | {a.chunk + a.block}
    for n in sorted({min(n, a.longest) for n in found if n > 0}):
        yield f"ask a {n} new=2; ask b a[:{max(1, n - 1)}] 2; submit c {n}; submit d {max(1, n // 2)}; wait"


def _company(a: Aim) -> Iterator[str]:
    b, long = a.block, min(3 * a.block, a.longest)
    yield f"submit a {b}; submit b {b + 1} new=3; submit c 1 new=2; submit d {long} new=2; wait"
    yield f"submit a {2 * b} 3 new=2; submit b a[:{2 * b}] 2 new=3; submit c a[:{b}] 4; submit d a[:{b}] 1; wait"
    yield f"submit a {long}; step 1; submit b a[:{2 * b}] 3; step 1; submit c a[:{b}] 2 new=3; wait; ask d a 3"
    yield f"submit a 1 new={b}; step 2; submit b {long} new=2; step 1; submit c 3 new=4; wait"
    begun = "; ".join(f"submit x{i} {1 + 5 * i % long} new={1 + i % 4}" for i in range(12))
    yield f"{begun}; wait; ask b x3 2; ask c x7 2"
    part, more = b + max(1, b // 4), max(1, b // 2)  # two go on at once in a block that is filled in part
    yield f"ask a {part}; submit b a[:{part}] {more} new=2; submit c a[:{part}] {more} new=2; wait"


def _cancels(a: Aim) -> Iterator[str]:
    b, long = a.block, min(3 * a.chunk, a.longest)
    for steps in ("", "step 1; ", "step 2; "):
        yield f"submit a {long}; {steps}cancel a; ask b a[:{2 * b}] 3; ask c a 2; ask d {2 * b} new=2"
    yield f"submit a {b} new={b + 8}; step 3; cancel a; ask b a[:{b}] 3 new=2; ask c {long}"
    yield f"ask a {2 * b}; submit b a 3 new=8; submit c a 2 new=8; step 1; cancel b; wait; ask d a[:{b}] 4 new=2"
    yield f"submit a {2 * b} 2 new=4; submit b a[:{2 * b}] 3 new=4; cancel a; wait b; ask c a 5; ask d {long}"
    shares = f"submit b a[:{b}] {long}; step 1; cancel b"
    yield f"submit a {2 * b} 2 new={b + 8}; step 2; {shares}; submit c {long}; wait"
    if "samples" in a.declared.can:
        yield f"submit a {b + 1} samples=3 new={b + 8}; step 3; cancel a; ask b a 3 new={b + 8}"
    first = min(a.chunk + b + b // 2, a.longest)  # its last chunk leaves a part of a block in the budget
    again = f"ask c b[:{b}] 3 new=2; ask d b[:{min(3 * b, long)}] 2"
    yield f"submit a {first}; submit b {long}; step 2; cancel b; {again}"


def _samples(a: Aim) -> Iterator[str]:
    for n in a.ends(2):
        yield f"ask a {n} samples=3 new={min(a.block + 2, 20)}; ask b a 2; ask c a[:{n - 1}] 2 samples=2 new=3"
    yield f"submit a {a.block + 1} samples=2 new=6; submit b a[:{a.block}] 2 samples=3; submit c 5 new=3; wait"


def _accepted(a: Aim) -> Iterator[str]:
    for n in (a.block - 1, a.block, 2 * a.block):
        run = max(6, min(n, a.longest - 8))
        yield f"ask a up{run} 3 a[1:4] new={min(run, 12)}; ask b a 2; ask c up{run} 2 c[:3] new=8"


def _rejected(a: Aim) -> Iterator[str]:
    for n in (a.block - 4, a.block, 2 * a.block + 1):
        size = max(6, n)
        yield f"ask a {size} a[2:5] new=6; ask b a 2 new=3; ask c up5 {size} c[1:3] new=10; ask d a[:{size}] 3"
    yield "submit a 9 a[2:5] new=8; submit b up6 8 b[1:4] new=9; submit c 20 new=4; wait; ask d b 2; ask e a 2"
    yield from _last_rejected(a)


def _last_rejected(a: Aim) -> Iterator[str]:
    """The last token of a text stands where a draft was refused: at the end of a block, before it, behind it. The
    text is gone on from."""
    for run, more in ((2, 0), (3, 0), (4, 0), (2, -1), (3, 1)):
        rows = -(-(2 * run + 3) // a.block) * a.block + more
        yield f"ask a up{run} {rows - 2 * run - 1} a[:1] new={run}; ask b a 2"


def _stops(a: Aim) -> Iterator[str]:
    b = a.block
    for stop in (1, b):
        yield f"ask a {b + 1} new={b + 4} stop={stop}; ask b a 2; ask c b[:{b}] 3 new=3 stop=2; ask d c 1 new=2"
    run = 2 * b + 4
    for stop in sorted({2, 3, b + 1}):  # right drafts reach beyond the end
        yield f"ask a up{run} 3 a[1:4] new={run - 4} stop={stop}; ask b a 2; ask c a new=3"
    if "concurrent" in a.declared.can:
        yield f"submit a {b} new={b + 8} stop={b}; submit b {b + 1} new=3 stop=1; submit c 3 new=5; wait; ask d a 2"


def _adapters(a: Aim) -> Iterator[str]:
    b, long = a.block, min(3 * a.block, a.longest)
    yield (
        f"ask a {2 * b} 3 adapter=x; ask b a[:{2 * b}] 3 adapter=y; ask c a[:{2 * b}] 3; "
        f"ask d a[:{2 * b}] 2 adapter=x; ask e c 2 adapter=y"
    )
    yield f"ask a {2 * b} 3; ask b a[:{2 * b}] 3 adapter=x new=2; ask c a[:{2 * b}] 2; ask d b 3 new=2; ask e b 2"
    yield f"ask a {long} adapter=x; ask b {long}; ask c a[:{long - 1}] 2; ask d a 3 adapter=y; ask e b 2 adapter=x"
    if "salt" in a.declared.can:  # a name of both
        both = f"ask b a[:{2 * b}] 3 adapter=x; ask c a[:{2 * b}] 3 salt=x adapter=y"
        yield f"ask a {2 * b} 3 salt=x; {both}; ask d c 2"
    if "concurrent" in a.declared.can:
        yield (
            f"submit a {2 * b} 3 new=3 adapter=x; submit b a[:{2 * b}] 2 new=3 adapter=y; "
            f"submit c a[:{2 * b}] 1 new=4; submit d {b} new=2 adapter=x; wait; ask e c 2 adapter=y; ask f a 2"
        )
        begun = "; ".join(f"submit x{i} {long} new=3{('', ' adapter=x', ' adapter=y')[i % 3]}" for i in range(6))
        yield f"{begun}; wait; ask a x0[:{2 * b}] 2 adapter=x; ask b x1[:{2 * b}] 2; ask c x2[:{2 * b}] 2 adapter=x"
    if "samples" in a.declared.can:
        yield f"ask a {b + 1} samples=3 new={b} adapter=x; ask b a 2 adapter=x; ask c a[:{b + 1}] 2 samples=2"
    others = "; ".join(f"ask x{i} {long} new=2" for i in range(a.declared.sequences or SEQUENCES))
    yield f"ask a {long} adapter=x; {others}; ask b a[:{long - 1}] 2; ask c a 2 adapter=y; ask d x0 2 adapter=x"


def _vectors(a: Aim) -> Iterator[str]:
    """Texts whose ids are the same, as their vectors stand in one place, and whose vectors are others."""
    b, long = a.block, min(3 * a.block, a.longest)
    again = f"ask c a[:{2 * b}] 2 vectors=:; ask d a[:{2 * b}] 3; ask e d 2 vectors=:{2 * b}"
    yield f"ask a {2 * b} 3 vectors=:; ask b {2 * b} 3 vectors=:; {again}"
    for start in sorted({0, 1, b - 1, b}):  # vectors that end in a block that is shared
        stop = start + b
        other = f"ask b a[:{start}] {b} a[{stop}:{2 * b}] 2 vectors={start}:{stop}"
        yield f"ask a {2 * b} 3 vectors={start}:{stop}; {other}; ask c a[:{2 * b}] 1 new=2 vectors={start}:{stop}"
    if b > 1:  # the same vectors in another order
        swapped = f"a[{b - 1}:{b}] a[:{b - 1}] a[{b}:{2 * b}]"
        yield f"ask a {2 * b} 1 vectors=:; ask b {swapped} 2 vectors=:; ask c a[:{b}] 3 new=2 vectors=1:{b}"
    for n in sorted({min(n, a.longest) for n in (a.chunk + b, 2 * a.chunk + 1)}):
        yield f"ask a {n} new=2 vectors=:; ask b a[:{n - 1}] 2 vectors=:; ask c {n} vectors={n // 2}:; ask d c 2"
    if "concurrent" in a.declared.can:
        others = f"submit b {2 * b} 1 new=4 vectors=1:{b}; submit c {b} new=2; submit d {long} vectors={b}:"
        yield f"submit a {2 * b} 3 new=3 vectors=:; {others}; wait; ask e b 2; ask f a 2 vectors=:{b}"
        rows, many = a.declared.blocks * a.declared.block, min(a.declared.sequences or SEQUENCES, 16)
        for share in (1.0, 0.6) if rows and rows // many <= a.longest else ():  # some are preempted
            n = max(2, int(rows // many * share) - 1)
            begun = "; ".join(f"submit x{i} {n} new={min(2 * b + 2, MOST_NEW)} vectors=:" for i in range(many))
            yield f"{begun}; wait; ask a x0[:{b}] 3 vectors=:"
    if "samples" in a.declared.can:
        yield f"ask a {b + 1} samples=3 new={b} vectors=:; ask b a 2; ask c {b + 1} samples=2 vectors=:{b}"


RECIPES: dict[str, tuple[Recipe, str]] = {
    "SERVE-1": (_alone, ""),
    "SERVE-2": (_again, ""),
    "SERVE-3": (_other_context, ""),
    "SERVE-4": (_ends, ""),
    "SERVE-5": (_whole, ""),
    "SERVE-6": (_windows, ""),
    "SERVE-7": (_continued, ""),
    "SERVE-8": (_salts, "salt"),
    "SERVE-9": (_evictions, ""),
    "SERVE-10": (_preemptions, "concurrent"),
    "SERVE-11": (_chunks, ""),
    "SERVE-12": (_company, "concurrent"),
    "SERVE-13": (_cancels, "cancel"),
    "SERVE-14": (_samples, "samples"),
    "SERVE-15": (_accepted, ""),
    "SERVE-16": (_rejected, ""),
    "SERVE-18": (_stops, "stop"),
    "SERVE-19": (_adapters, "adapters"),
    "SERVE-20": (_vectors, "vectors"),
}
"""Histories by the clause that they aim at, and what the engine must be able to do."""


def histories(a: Aim, lives: Iterator[History]) -> Iterator[tuple[str, History]]:
    """Give histories with their clauses. First comes one of each clause, then another one, and so on, with a life
    behind every second turn. Lives alone come last."""
    able = {clause: recipe for clause, (recipe, needs) in RECIPES.items() if not needs or needs in a.declared.can}
    aimed = {clause: filter(a.bears, map(history, recipe(a))) for clause, recipe in able.items()}
    found = [[(clause, each) for each in those] for clause, those in aimed.items()]
    for number, turn in enumerate(zip_longest(*found)):
        yield from filter(None, turn)
        yield from ((LIFE, next(lives)) for _ in range(number % 2))
    yield from ((LIFE, life) for life in lives)
