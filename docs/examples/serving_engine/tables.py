"""Gives sequences their blocks, and takes them back: the block tables of all groups of layers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from serving_engine.blocks import ELSEWHERE, NULL, Pool, Rows
from serving_engine.host import Host
from serving_engine.prefix_cache import PrefixCache
from serving_engine.sequence import Sequence, Settings


class Tables:
    """Manages the blocks of all sequences."""

    def __init__(self, settings: Settings, rows: Rows) -> None:
        self.size, self.prefix_cache, self.rows = settings.block_size, settings.prefix_cache, rows
        self.pool = Pool(settings.blocks)
        self.cache = PrefixCache(rows.groups, settings.block_size)
        self.host = Host(rows, settings.host_blocks)
        self.counts: Counter[str] = Counter()

    def reuse(self, sequence: Sequence) -> None:
        """Let a sequence begin with blocks that the prefix cache has."""
        sequence.tables = [[] for _ in self.rows.groups]
        if self.prefix_cache:
            sequence.keys = self.keys(sequence)
            sequence.tables = self.found(sequence)
        for table in sequence.tables:
            for block in table:
                self.pool.share(block)
        self.load(sequence)
        sequence.published = len(sequence.tables[0])
        sequence.computed = sequence.published * self.size

    def keys(self, sequence: Sequence) -> list[bytes]:
        """Give the keys of a sequence's full blocks."""
        request = sequence.request
        return self.cache.keys(request.salt, sequence.tokens, sequence.keys, request.adapter, request.vectors)

    def found(self, sequence: Sequence) -> list[list[int]]:
        """Give the blocks that a sequence can begin with; none of the host's, if there is no room for them."""
        tables = self.cache.find(sequence.keys, len(sequence.tokens), self.host.kept)
        blocks = [block for table in tables for block in table]
        if sum(block == ELSEWHERE or block in self.pool.free for block in blocks) > len(self.pool.free):
            return self.cache.find(sequence.keys, len(sequence.tokens))
        return tables

    def load(self, sequence: Sequence) -> None:
        """Load what only the host has. All is looked up before blocks are taken for it: they may push it out."""
        missing = [
            (table, index, (group, sequence.keys[index]))
            for group, table in enumerate(sequence.tables)
            for index, block in enumerate(table)
            if block == ELSEWHERE
        ]
        kept = [self.host.look_up(name) for _, _, name in missing]
        for (table, index, name), rows in zip(missing, kept, strict=True):
            table[index] = self.take()
            self.host.load(name, rows, table[index])
            self.cache.publish(*name, table[index])
        self.counts["loads"] += len(missing)

    def reserve(self, sequence: Sequence, end: int) -> bool:
        """Make room for rows up to position `end`: new blocks, and copies of those that others have too. Say
        whether there are enough; else nothing is changed."""
        shared = [self.shared(sequence, table) for table in sequence.tables]
        missing = [max(0, -(-end // self.size) - len(table)) for table in sequence.tables]
        if sum(missing) + sum(map(len, shared)) > len(self.pool.free):
            return False
        for table, indices, count in zip(sequence.tables, shared, missing, strict=True):
            for index in indices:
                table[index] = self.own(table[index])
            table += [self.take() for _ in range(count)]
        return True

    def shared(self, sequence: Sequence, table: list[int]) -> list[int]:
        """Give the indices of blocks that will be written to, and that others have too."""
        first = sequence.computed // self.size
        return [i for i in range(first, len(table)) if self.pool.counts[table[i]] > 1]

    def take(self) -> int:
        """Take a block for new rows: what was cached in it is found no more, but in the host."""
        block = self.pool.take()
        if self.host.blocks and block in self.cache.names:
            self.host.offload(self.cache.names[block], block)
        self.counts["evictions"] += self.cache.forget(block)
        return block

    def own(self, block: int) -> int:
        """Give a copy of a block that others have too."""
        copy = self.take()
        self.rows.copy(block, copy)
        self.give_back(block)
        self.counts["copies"] += 1
        return copy

    def give_back(self, block: int) -> None:
        """Take a block out of a table. Its rows are of use as long as they can be found."""
        self.pool.give_back(block, useless=block not in self.cache.names)

    def commit(self, sequence: Sequence) -> None:
        """Note that a sequence's first `computed` rows are computed: full blocks can be found from now on, and what
        no later query sees is given back."""
        if self.prefix_cache:
            self.publish(sequence)
        for group, table in zip(self.rows.groups, sequence.tables, strict=True):
            for index in range(group.first(sequence.computed) // self.size):
                self.give_back(table[index])
                table[index] = NULL

    def publish(self, sequence: Sequence) -> None:
        """Offer the full blocks that are new to the prefix cache."""
        full = sequence.computed // self.size
        sequence.keys = self.keys(sequence)
        for group, table in enumerate(sequence.tables):
            for index in range(sequence.published, full):
                self.cache.publish(group, sequence.keys[index], table[index])
        sequence.published = full

    def fork(self, parent: Sequence, sample: int) -> Sequence:
        """Begin another sample: it has the same blocks."""
        for table in parent.tables:
            for block in table:
                self.pool.share(block)
        return replace(
            parent,
            sample=sample,
            tokens=list(parent.tokens),
            tables=[list(table) for table in parent.tables],
            keys=list(parent.keys),
            logprobs=list(parent.logprobs),
        )

    def release(self, sequence: Sequence) -> None:
        """Take all blocks back. The last ones of a text are taken for others first: fewer texts begin with them."""
        for table in sequence.tables:
            for block in reversed(table):
                self.give_back(block)
        sequence.tables = [[] for _ in self.rows.groups]
        sequence.computed = sequence.published = 0
