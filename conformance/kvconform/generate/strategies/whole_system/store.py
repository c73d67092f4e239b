"""Work on the store of several layers, and on its batch."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from kvconform.generate.strategies.whole_system.layers import Layers


class OfStore(Layers):
    """Draws work on the store, beside that on the layers."""

    def _length(self) -> int:
        """Give the length of the store's longest layer."""
        return max(int(layer.length) for layer in self.session.caches["D"].layers)

    def _fill(self) -> Iterator[str]:
        room = int(self.session.caches["D"].room) - self._length()
        layer = self.of("", "", f" layer={len(self.session.caches['D'].layers) - 1}")
        yield f"D: append {self.of(1, 2, room, room + 1, 0)}{layer}"

    def _store(self) -> Iterator[str]:
        to = self.number(0, self._length() + 1)
        yield f"D: {self.of(f'rollback {to}', 'reset', f'setlength 0 {to}', 'zero', 'fingerprint 0')}"

    def _saved(self) -> Iterator[str]:
        if "s" not in self.session.names["saved store"] or self.draw(st.booleans()):
            yield "D: save s"
        yield from self._fill()
        yield "D: load s"

    def _batch(self) -> Iterator[str]:
        yield from self._fill()
        yield f"D: batch {self.number(1, 4)}"
        yield from self._sequence()

    def _sequence(self) -> Iterator[str]:
        """Scatter, step, roll back or reset."""
        where, n = self.number(0, 3), self.number(0, self._length() + 1)
        layer = self.of("", "", " layer=0")
        yield self.of(f"D: scatter {where} {n}{layer}", "D: step", f"D: rollback {n} sequence={where}")
        yield self.of("D: step", "D: step", "D: resetbatch", "D: step v_dim=11")

    def _work(self) -> Iterator[str]:
        """Replay captured work; at times after its batch is gone."""
        if "c" not in self.session.names["captured work"] or self.draw(st.booleans()):
            yield "D: capture c"
        yield self.of("D: step", "D: step", "D: freebatch", "D: batch 4")
        if "c" in self.session.names["captured work"]:
            yield "D: replay c"

    def _layer(self) -> Iterator[str]:
        """Pass a token through the layers of the store."""
        n, asked = self.of(1, 1, 2), self._queries()
        yield from (f"D: attend {n} {asked} layer={i}" for i in range(len(self.session.caches["D"].layers)))

    def _asked(self) -> Iterator[str]:
        yield f"D: attendbatch {self.number(0, len(self.session.caches['D'].layers) - 1)} {self._queries()}"

    def _graph(self) -> Iterator[str]:
        """Capture an attend, or replay it among other work."""
        if "g" not in self.session.names["captured attention"] or not self.number(0, 3):
            yield f"D: captureattend g {self.number(0, len(self.session.caches['D'].layers) - 1)}"
        yield "D: replayattend g"
