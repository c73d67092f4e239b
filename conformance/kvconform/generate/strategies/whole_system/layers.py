"""Work on caches of one sequence: the layers that tokens pass through, and the one with sinks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hypothesis import strategies as st

from kvconform.generate.strategies.trace_builder import Drawing
from kvspec.operations.table import listed


class Layers(Drawing):
    """Draws work on the layers, whose letters are `layers`."""

    layers: list[str]
    chapters: Collection[str]
    kinds: tuple[str, ...]
    """The kinds of work that the adapter can do."""

    def offset(self, layer: str) -> int:
        """Count the tokens in a layer."""
        return int(self.session.caches[layer].offset)

    def rows(self, layer: str) -> int:
        """Draw how many rows to append: few, up to the window's fill, or one beyond it."""
        window = self.session.caches[layer].config.window or 3
        room = max(0, window - self.offset(layer))
        return self.of(1, 1, 2, room, room + 1, window, window + 1, 0)

    def _tokens(self) -> Iterator[str]:
        """Pass n tokens through every layer."""
        n = self.rows(self.of(*self.layers))
        yield from (f"{layer}: append {n}" for layer in self.layers)

    def _one(self) -> Iterator[str]:
        layer = self.of(*self.layers)
        yield f"{layer}: append {self.rows(layer)}{self.of('', '', ' fill=bits', ' k_dim=11')}"

    def _rewind(self) -> Iterator[str]:
        """Rewind every layer that can to the same position."""
        least = min(map(self.offset, self.layers))
        to = self.of(max(0, least - 1), self.number(0, least), least, 0, least + 1)
        yield from (f"{layer}: rewind {to}" for layer in self.layers)

    def _look(self) -> Iterator[str]:
        layer = self.of(*self.layers)
        yield f"{layer}: {self.of('view', 'scribble', f'ask {self.number(-1, self.offset(layer) + 1)}')}"

    def _clear(self) -> Iterator[str]:
        if self.draw(st.booleans()):
            yield f"{self.of(*self.layers)}: free"

    def _mask(self) -> Iterator[str]:
        yield f"{self.of(*self.layers)}: mask {self.of('causal', 'none', 'causal & window=2')}"

    def _wrapped(self) -> str:
        """Choose the layers of a round, one of them perhaps without a cache."""
        chosen = [layer for layer in self.layers if self.number(0, 3)] or self.layers[:1]
        return "".join(self.draw(st.permutations([*chosen, *self.of((), (), ("-",))])))

    def _drafts(self, name: str, wrapped: str) -> Iterator[str]:
        """Pass drafts through the layers; with masks, some side by side, and ask for one."""
        for _ in range(self.number(0, 3)):
            n = self.of(1, 1, 2, 3, 0)
            beside = f" on={listed([-1] * n)}" if "mask" in self.chapters and not self.number(0, 3) else ""
            yield from (f"{layer}: draft {name} {n}{beside}" for layer in wrapped if layer != "-")
        if "mask" in self.chapters and self.draw(st.booleans()):
            yield f"{wrapped.strip('-')[0]}: mask round={name} {self.of('causal', 'window=2')}"

    def _round(self) -> Iterator[str]:
        """Draft on every layer, do other work meanwhile, and keep some of the drafts."""
        wrapped = self._wrapped()
        yield f"speculate r {wrapped}"
        yield from self._drafts("r", wrapped)
        yield from getattr(self, f"_{self._meanwhile()}")()
        yield self.of("commit r 1", f"commit r {self.number(-1, 7)}", "commit r 0", "abandon r", "choose r 0")
        if not self.number(0, 5):
            yield "commit r 1"

    def _meanwhile(self) -> str:
        """Work while a round is open: on caches outside it, or refused operations on those in it."""
        other = [k for k in self.kinds if k in ("fill", "sequence", "copy", "look", "one")]
        return self.of(*other)

    def _isolated(self) -> Iterator[str]:
        """Draft in isolation while the live caches go on."""
        wrapped = self._wrapped()
        yield f"speculate i {wrapped} isolated=1"
        yield from self._drafts("i", wrapped)
        yield from self._tokens()
        yield from self._drafts("i", wrapped)
        yield self.of("abandon i", "commit i 1")

    def _snapshot(self) -> Iterator[str]:
        name = self.of("p", "q")
        yield from (f"{layer}: snapshot {name}{layer.lower()}" for layer in self.layers)

    def _restore(self) -> Iterator[str]:
        """Restore every layer to where it was saved, or to less."""
        names = {layer: f"{self.of('p', 'q')}{layer.lower()}" for layer in self.layers}
        there = {layer: name for layer, name in names.items() if name in self.session.snapshots}
        for layer, name in there.items():
            saved = self.session.snapshots[name]
            stop = saved.stop if saved else 0
            yield f"{layer}: restore {name} {self.of(stop, stop, max(0, stop - 1), stop + 1)}"
        if not there:
            yield from self._snapshot()

    def _plan(self) -> Iterator[str]:
        yield f"{self.of(*self.layers)}: plan {self.number(0, 9)}"
        yield f"{self.of(*self.session.caches)}: fit {self.number(0, 1 << 20)} 1000"

    def _turned(self) -> Iterator[str]:
        """Pass n tokens with RoPE, with a base for each layer; at times to one layer too many."""
        n, pairing = self.rows(self.of(*self.layers)), self.of("neox", "norm")
        bases = self.of("", " base=500000"), "", self.of("", " base=7")
        yield from (f"{a}: attend {n} rope={pairing}{b}" for a, b in zip(self.layers, bases, strict=False))
        if "store" in self.chapters:
            yield f"D: attend {self.of(1, 2)} layer=0 rope={pairing}"

    def _rotate(self) -> Iterator[str]:
        """Rotate rows on some cache, at times by the offset of the first layer."""
        cache = self.of(*self.session.caches)
        by = self.of("", " by=-3", f" by={self.offset(self.layers[0])}")
        yield f"{cache}: rotate {self.number(0, 3)} {self.of(0, 1, 70000)} pairing={self.of('norm', 'neox')}{by}"

    def _queries(self) -> str:
        """Draw heads, splits, and where the output goes."""
        heads = self.start.config.kv_heads * self.of(1, 2)
        return f"heads={heads} splits={self.of(1, 2)}{self.of('', ' into=1')}"

    def _attend(self) -> Iterator[str]:
        """Pass tokens through every layer that attends."""
        n, asked = self.rows(self.of(*self.layers)), self._queries()
        mask = self.of("", "", " through causal & window=2", " through none")
        yield from (f"{layer}: attend {n} {asked}{mask}" for layer in self.layers)

    def _sinks(self) -> Iterator[str]:
        """Append beside sinks, and ask for positions or go back."""
        offset = self.offset("J")
        yield f"J: append {self.of(1, 1, 2, 5, 0)}{self.of('', ' fill=bits')}"
        yield f"J: {self.of('positions', 'view', f'rewind {self.number(0, offset)}', 'free')}"
