"""Finds blocks that were computed before, by what their rows depend on.

A row depends on its token, on all tokens before it, and on the adapter. So the key of a block is made of its tokens
and of the key of the block before it; that of the first block, of the request's salt and its adapter. Where
vectors are handed in, ids say nothing, and the vectors are in the key."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from serving_engine.blocks import ELSEWHERE, NULL, Floats, Group

Name = tuple[int, bytes]
"""What a block is found by: its group of layers, and its key."""


class PrefixCache:
    """Full blocks whose rows are computed, by their keys. Each group of layers has blocks of its own."""

    def __init__(self, groups: Sequence[Group], size: int) -> None:
        self.groups, self.size = groups, size
        self.blocks: dict[Name, int] = {}
        self.names: dict[int, Name] = {}
        """The group and the key under which a block is found."""

    def root(self, salt: str, adapter: str = "") -> bytes:
        """Give what stands for the key before the first block's."""
        return hashlib.sha256(self.adapted(adapter) + b"salt " + salt.encode()).digest()

    def adapted(self, name: str) -> bytes:
        """Give what stands for an adapter in a key; names end, so that no name and salt are those of others."""
        return name.encode() + b"\0"

    def key(self, parent: bytes, tokens: Sequence[int], vectors: bytes = b"") -> bytes:
        """Give the key of a block: its tokens and what stands for its vectors, behind the block of key `parent`."""
        return hashlib.sha256(parent + np.asarray(tokens, np.int64).tobytes() + vectors).digest()

    def keys(
        self,
        salt: str,
        tokens: Sequence[int],
        known: Sequence[bytes] = (),
        adapter: str = "",
        vectors: Mapping[int, Floats] = MappingProxyType({}),
    ) -> list[bytes]:
        """Give the keys of all full blocks of a text. `known` are those of its first blocks."""
        root = self.root(salt, adapter)
        found = list(known)
        for start in range(len(found) * self.size, len(tokens) - self.size + 1, self.size):
            held = self.held_vectors(vectors, start)
            found.append(self.key(found[-1] if found else root, tokens[start : start + self.size], held))
        return found

    def held_vectors(self, vectors: Mapping[int, Floats], start: int) -> bytes:
        """Give what stands for the vectors of a block in its key: each one, behind its place."""
        places = [at for at in range(start, start + self.size) if at in vectors]
        return b"".join(b" vector %d " % at + vectors[at].tobytes() for at in places)

    def find(self, keys: Sequence[bytes], rows: int, host: Collection[Name] = ()) -> list[list[int]]:
        """Give the tables of the longest prefix of a text of `rows` tokens that can be gone on from. Of each group
        all is there that a query behind it sees, here or in the `host`. At least one token is left to compute: it
        gives the logits."""
        for count in range(min(len(keys), self.usable(rows)), 0, -1):
            tables = [self.held(group, keys, count, host) for group in range(len(self.groups))]
            if None not in tables:
                return [table for table in tables if table is not None]
        return [[] for _ in self.groups]

    def usable(self, rows: int) -> int:
        """Give how many blocks of a text may be found: not the one with its last token."""
        return (rows - 1) // self.size

    def held(self, group: int, keys: Sequence[bytes], count: int, host: Collection[Name]) -> list[int] | None:
        """Give a group's table of `count` blocks; None if one is missing that is seen from behind them."""
        first = self.groups[group].first(count * self.size) // self.size
        found = [self.home(group, key, host) for key in keys[first:count]]
        table = [block for block in found if block is not None]
        return None if None in found else [NULL] * first + table

    def home(self, group: int, key: bytes, host: Collection[Name]) -> int | None:
        """Give the block of a key; `ELSEWHERE` if only the host has it, None if nobody has."""
        return self.blocks.get((group, key), ELSEWHERE if (group, key) in host else None)

    def publish(self, group: int, key: bytes, block: int) -> None:
        """Let a block be found. The first one of a key stays the one that is found."""
        if (group, key) not in self.blocks:
            self.blocks[group, key] = block
            self.names[block] = group, key

    def forget(self, block: int) -> bool:
        """Let a block not be found any more, as it is taken for other rows. Say whether it could be found."""
        name = self.names.pop(block, None)
        if name is not None:
            del self.blocks[name]
        return name is not None
