"""Work on the other caches: buffers, pools of pages, batches, graphs, and caches of layers."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from kvconform.generate.strategies.trace_builder import Drawing
from kvspec.operations.table import listed


class Pools(Drawing):
    """Draws work on them."""

    def _padded(self) -> Iterator[str]:
        """Feed a block to the batch, perhaps one whose columns ask, and trim it."""
        lengths = self.session.caches["H"].sequences()
        block = self.of("feed", "feed", "attendblock")
        more = self.of("", "", " n=4", " fill=bits" if block == "feed" else " beside=numbers")
        yield f"H: {block} {listed(self.number(0, 3) for _ in lengths)}{more}"
        yield f"H: trim {listed(self.number(0, min(2, n)) for n in lengths)}"

    def _beams(self) -> Iterator[str]:
        """Rearrange the batch, and keep it small."""
        now = len(self.session.caches["H"].sequences())
        beams = listed(self.number(0, now - 1) for _ in range(now))
        yield f"H: {self.of(f'reorder {beams}', 'repeat 2', 'extend H')}"
        yield f"H: filter {listed(range(self.number(1, min(now, 3))))}"

    def _joined(self) -> Iterator[str]:
        """Make the rows of A a sequence, and those of a sequence the rows of I."""
        yield f"H: {self.of('join A', 'join AI', 'join AA')}"
        yield "H: extract 0 I"
        yield f"I: {self.of('append 1', 'view', 'rewind 0')}"

    def _filled(self) -> Iterator[str]:
        """Fill the host's rows, or sync them from the device; at times install them."""
        back = max(0, self.session.caches["G"].past() - 1)
        yield self.of("G: sync", f"G: prefill {self.number(0, 5)}", f"G: cut {back}")
        yield self.of("G: bind refresh=1", "G: sync", "G: bind", "G: unbind")

    def _decoded(self) -> Iterator[str]:
        """Decode steps, after the work they may need first."""
        refresh = " refresh=1" * self.session.caches["G"].stale
        yield from (f"G: decode{refresh if i == 0 else ''}" for i in range(self.number(1, 3)))

    def _verified(self) -> Iterator[str]:
        """Verify a block, mostly with the reset after it."""
        yield f"G: block {self.number(1, 3)}"
        yield self.of("G: unbind", "G: unbind", "G: decode")

    def _encoded(self) -> Iterator[str]:
        yield self.of(f"G: encode {self.number(0, 4)}", "G: cross 2")
        yield f"G: cross {self.number(1, 2)}"

    def _copy(self) -> Iterator[str]:
        capacity = self.session.caches["E"].config.capacity or 1
        at, n = self.number(0, 2 * capacity), self.of(1, 2, capacity, capacity + 1, 0)
        yield self.of(f"E: copy {n} {at} sliding=1", f"E: copy {n} {at}")
        if self.draw(st.booleans()):
            yield f"E: alias 1 {at % capacity} {capacity - 1}"

    def _request(self) -> Iterator[str]:
        """Admit or fork a sequence, or drop one."""
        used = [(number, len(one.rows)) for number, one in enumerate(self.session.caches["F"].all) if one]
        number, rows = self.of(*used, (len(used), 0))
        shared = self.of(rows, self.number(0, rows))
        yield f"F: {self.of('admit', f'fork {number} {shared}', f'fork {number} {shared}', f'drop {number}')}"
        yield from self._pages()

    def _pages(self) -> Iterator[str]:
        """Append rows to a sequence: to the end of its page or of the pool, or fewer."""
        pool = self.session.caches["F"]
        used = [(number, one) for number, one in enumerate(pool.all) if one]
        if not used:
            yield "F: admit"
            return
        number, one = self.of(*used)
        page = -len(one.rows) % pool.size
        room = page + pool.free_pages() * pool.size
        more, to = f"append {self.of(1, 1, 2, page + 1, room, room + 1)}", self.number(0, len(one.rows))
        yield f"F: {self.of(f'{more} sequence={number}', f'{more} sequence={number}', f'truncate {number} {to}')}"

    def _asked_for(self) -> Iterator[str]:
        """Begin a sequence that finds rows of another one, or ask, or make pages forget."""
        text = "".join(self.of("x", "x", "y") for _ in range(self.number(1, 5)))
        yield f"K: {self.of('request', 'request', 'match')} {text}{self.of('', '', ' salt=s', ' adapter=s')}"
        if not self.number(0, 4):
            yield f"K: {self.of('evict 1', 'clear')}"

    def _lives(self) -> Iterator[str]:
        """Go on with a sequence of the pool that finds rows, or end it."""
        number = self.of(*sorted(self.session.caches["K"].all), 0)
        yield f"K: {self.of('answer {} y', 'propose {} x', 'compute {} 2', 'finish {}').format(number)}"
        yield f"K: {self.of('accept {} 1', 'accept {} 0', 'answer {} x', 'abort {}', 'finish {}').format(number)}"

    def _ways(self) -> Iterator[str]:
        """Hand drafts to all layers, on the newest one or on any, and keep those on one way."""
        there, n = len(self.session.caches["L"].drafts), self.of(1, 2, 3)
        on = (self.of(i - 1, self.number(-1, i - 1)) for i in range(there, there + n))
        yield f"L: branch {n}{self.of('', f' on={listed(on)}')}"
        if self.number(0, 2):
            yield f"L: settle {self.number(-1, there + n - 1)}"

    def _deeper(self) -> Iterator[str]:
        """Append to all layers, or take tokens back."""
        offset = int(self.session.caches["L"].offset)
        yield f"L: {self.of('append 1', 'append 2', f'rewind {self.number(0, offset)}', 'encode 2', 'free')}"

    def _table(self) -> Iterator[str]:
        """Gather rows of one or two random pages, or peek at a page."""
        pool = self.session.caches["F"]
        first, second = (self.number(0, pool.total - 1) for _ in range(2))
        yield self.of(f"F: gather {first} 1", f"F: gather {first},{second} {pool.size + 1}", f"F: peek {first}")
