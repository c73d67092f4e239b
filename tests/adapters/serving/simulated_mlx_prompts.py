"""mlx-lm's store of caches of prompts, `LRUPromptCache`, in random lives: requests are begun with the cache that it
finds, computed, answered and stored, as its server does it. There is no model: a row is 32 bits of its history."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models import cache as caches
from mlx_lm.models.cache import LRUPromptCache, make_prompt_cache, trim_prompt_cache

from adapters.serving.kept_rows import Event, Lives, Store, answered, row

WINDOW = 8
FORMS = {
    "full": lambda: caches.KVCache(),
    "window": lambda: caches.RotatingKVCache(WINDOW),
    "chunk": lambda: caches.ChunkedKVCache(WINDOW),
    "q8": lambda: caches.QuantizedKVCache(group_size=32, bits=8),
    "state": lambda: caches.ArraysCache(1),
    "pair": lambda: caches.CacheList(caches.KVCache(), caches.RotatingKVCache(WINDOW)),
}
"""What makes a layer's cache."""
SHAPES = ("full", "full,full", "full,window", "q8", "full,state", "pair,full", "full,chunk", "window", "chunk")
VERBS = {"begin": 10, "end": 8, "leave": 1, "trim": 1}
NAMES = ("m", "m", "other")
TYPES = ("assistant", "assistant", "user", "system")


def bits(codes: Sequence[int]) -> Any:
    """Turn rows into what a cache takes, `[1, 1, n, 32]`: an element for each bit."""
    packed = np.array(codes, ">u4").view(np.uint8).reshape(len(codes), 4)
    return mx.array(np.unpackbits(packed, axis=1).astype(np.float32).reshape(1, 1, -1, 32))


def codes(rows: Any) -> list[int]:
    """Find rows in what a cache shows, also if they were rounded to eight bits."""
    if isinstance(rows, tuple):
        rows = mx.dequantize(*rows, group_size=32, bits=8)
    packed = np.packbits(np.array(rows).reshape(-1, 32) > 0.5, axis=1)
    return [int(code) for code in packed.view(">u4").reshape(-1)]


class Layer:
    """What a layer computes and demands of its cache."""

    def __init__(self, form: str, part: str, name: str) -> None:
        self.form, self.part, self.name = form, part, name

    def right(self, text: Sequence[int], positions: range, what: str = "k") -> list[int]:
        """The rows of these positions."""
        return [row(self.part + what, self.name, text[: p + 1]) for p in positions]

    def step(self, cache: Any, text: Sequence[int], start: int, end: int) -> str:
        """Compute the rows of a text from one position to another. Say what is wrong in what their queries see."""
        if self.form == "pair":
            both = zip(("full", "window"), cache.caches, strict=True)
            found = [Layer(form, self.part + form, self.name).step(c, text, start, end) for form, c in both]
            return next(filter(None, found), "")
        if self.form == "state":
            return self.state(cache, text, start, end)
        if self.form == "chunk":
            cache.maybe_trim_front()
        new = range(start, end)
        seen = cache.update_and_fetch(*(bits(self.right(text, new, what)) for what in "kv"))
        return self.sees(text, start, end, seen) or ("" if cache.offset == end else f"its offset is {cache.offset}")

    def state(self, cache: Any, text: Sequence[int], start: int, end: int) -> str:
        """Fold tokens into a state, which is all that a layer has of those before them."""
        was = [] if cache[0] is None else codes(cache[0])
        cache[0] = bits(self.right(text, range(end - 1, end)))
        right = self.right(text, range(max(0, start - 1), start))
        return "" if was == right else f"the state at {start} is another"

    def sees(self, text: Sequence[int], start: int, end: int, seen: Any) -> str:
        """Say which row is missing that a query sees, or which is there that is no row of this text."""
        first = {"window": max(0, start + 1 - WINDOW), "chunk": start // WINDOW * WINDOW}.get(self.form, 0)
        for what, found in zip("kv", map(codes, seen), strict=True):
            right = self.right(text, range(end), what)
            if missing := [p for p in range(first, end) if right[p] not in found]:
                return f"the row at {missing[0]} is missing"
            if strange := [i for i, code in enumerate(found) if code not in right]:
                return f"row {strange[0]} is no row of this text"
        return ""


class Prompts(Store):
    """A store of its size, and requests that are under way."""

    def __init__(self, seed: int, shape: str | None = None) -> None:
        super().__init__()
        draw = random.Random(seed)
        self.shape = shape or draw.choice(SHAPES)
        self.chunk, self.most = draw.choice([1, 4, 16]), draw.choice([2, 4, 1000])
        self.bytes = draw.choice([1 << 63, 400_000])
        self.store = LRUPromptCache(self.most, self.bytes)
        self.open: list[tuple[Event, list[int], Any]] = []

    def layers(self, name: str) -> list[Layer]:
        """The layers of a model."""
        return [Layer(form, str(i), name) for i, form in enumerate(self.shape.split(","))]

    def make_cache(self) -> list[Any]:
        """What mlx-lm asks a model for."""
        return [FORMS[form]() for form in self.shape.split(",")]

    def do(self, event: Event) -> None:
        if event.verb == "begin":
            self.begin(event)
        elif event.verb == "trim":
            self.store.trim_to(n_sequences=event.n)
            self.demand(len(self.store) <= event.n, "more are kept than it was trimmed to")
        elif self.open:
            request = self.open.pop(event.n % len(self.open))
            if event.verb == "end":
                self.answer(*request, TYPES[event.n % len(TYPES)])
        self.accounts()

    def begin(self, event: Event) -> None:
        """Begin a request with the nearest cache, and compute its prompt; store some beginnings of it."""
        text = list(event.text)
        cache, rest = self.store.fetch_nearest_cache(event.name, text)
        self.found(event, text, cache, len(text) - len(rest), rest)
        if not rest:  # all rows are there: the last token is computed again, if its row can be taken back
            rest = text[-1:] if trim_prompt_cache(cache, 1) else text
            cache = cache if len(rest) < len(text) else None
        cache, start = cache or make_prompt_cache(self), len(text) - len(rest)
        if event.n % 2 and (end := len(text) // 2) > start:
            self.compute(event.name, cache, text, start, end)
            self.insert(event.name, text[:end], copy.deepcopy(cache), "system")
            start = end
        self.compute(event.name, cache, text, start, len(text))
        self.open.append((event, text, cache))

    def found(self, event: Event, text: list[int], cache: Any, n: int, rest: list[int]) -> None:
        """Demand that what is said to be found may be there, and that what must be there is found."""
        self.demand(rest == text[n:] and (n == 0 or cache is not None), "the rest is not the rest")
        self.demand(n <= self.kept.most(event.name, text), f"{n} tokens are found, and were never stored")
        whole = self.kept.whole(event.name, text)
        must = whole if self.most == 1000 and self.bytes > 1 << 60 and whole > 1 else 0
        self.demand(n >= must or bool(self.counts["trim"]), f"{n} tokens are found, and {must} are stored")
        self.counts["hits"] += n > 0
        self.counts["reused"] += n

    def compute(self, name: str, cache: Any, text: list[int], start: int, end: int) -> None:
        """Compute rows in steps, and look at what each step sees."""
        for at in range(start, end, self.chunk):
            for layer, each in zip(self.layers(name), cache, strict=True):
                wrong = layer.step(each, text, at, min(end, at + self.chunk))
                self.demand(not wrong, f"behind {start} rows, layer {layer.part} ({layer.form}): {wrong}")
                self.counts["rows"] += min(end, at + self.chunk) - at

    def answer(self, event: Event, text: list[int], cache: Any, kind: str) -> None:
        """Answer a request, and store its cache."""
        whole = answered(text, 1 + event.n)
        for n in range(len(text), len(whole)):
            self.compute(event.name, cache, whole, n, n + 1)
        self.insert(event.name, whole, cache, kind)

    def insert(self, name: str, text: list[int], cache: Any, kind: str) -> None:
        """Store the rows of a text."""
        self.store.insert_cache(name, text, cache, cache_type=kind)
        self.kept.store(name, text)

    def accounts(self) -> None:
        """Demand that the store counts what it has, and has no more than it may have."""
        entries, tries = [], [*self.store._trie._trie.values()]
        while tries:
            for key, value in tries.pop().items():
                (entries if key == "__value__" else tries).append(value)
        size = sum(layer.nbytes for entry in entries for layer in entry.prompt_cache)
        self.demand(len(self.store) == len(entries), f"it counts {len(self.store)} caches and has {len(entries)}")
        self.demand(self.store.nbytes == size, f"it counts {self.store.nbytes} bytes and has {size}")
        self.demand(len(entries) <= self.most and size <= self.bytes, "it has more than it may have")

    def end(self) -> None:
        while self.open:
            self.do(Event("end"))
        self.store.trim_to(n_sequences=0)
        self.accounts()
        self.demand(self.store.nbytes == 0, "bytes are counted, and no cache is there")

    def close(self) -> None:
        self.open.clear()


def lives(shape: str | None = None) -> Lives:
    """Lives of stores of caches of these layers, or any."""
    return Lives(lambda seed: Prompts(seed, shape), VERBS, NAMES, 60)
