"""Rules of the bookkeeping of transformers' continuous batching, each broken by a patch of a few lines. `RULES`
says how each is shown."""

from __future__ import annotations

from typing import Any

from transformers.generation.continuous_batching.cache import PagedAttentionCache
from transformers.generation.continuous_batching.cache_allocators import cache_allocator
from transformers.generation.continuous_batching.cache_allocators.cache_allocator import BlockLedger, CacheAllocator
from transformers.generation.continuous_batching.cache_allocators.cache_pool import CachePool
from transformers.generation.continuous_batching.offloading_manager import OffloadingManager

from adapters.serving.rules import Patch, Rule, around


def keys_without_what_stands_before(patch: Patch) -> None:
    """The key of a page is of its own tokens alone."""
    around(patch, cache_allocator, "compute_block_hash", lambda right, before, tokens: right(None, tokens))


def short_keys(patch: Patch) -> None:
    """A key has three bits."""
    around(patch, cache_allocator, "compute_block_hash", lambda right, before, tokens: right(before, tokens) % 8)


def one_page_more_is_skipped(patch: Patch) -> None:
    """Behind what was found, a page of the prompt is skipped where there is one."""

    def planted(right: Any, self: Any, name: str, tokens: list[int]) -> int:
        n, page = right(self, name, tokens), self.cache_allocators["full_attention"].tokens_per_page
        return int(n + page if n and n + page < len(tokens) else n)

    around(patch, PagedAttentionCache, "search_prefix_match", planted)


def found_pages_are_not_counted(patch: Patch) -> None:
    """A page that a request finds is not counted as its own."""
    patch.setattr(BlockLedger, "acquire", lambda self, page: self.cached_blocks.pop(page, None))


def pages_of_others_go_back(patch: Patch) -> None:
    """What a request had goes back as a whole, also where others have it."""

    def planted(self: Any, name: str, no_cache: bool = False) -> None:
        self.pool.free_blocks(self.index, self.block_table.pop(name, []))

    patch.setattr(CacheAllocator, "free_blocks", planted)


def evicted_pages_are_found(patch: Patch) -> None:
    """The key of a page outlives its eviction."""

    def planted(self: Any) -> list[int]:
        pages = list(self.cached_blocks)
        self.cached_blocks.clear()
        return pages

    patch.setattr(BlockLedger, "evict_cached_blocks", planted)


def preempted_pages_are_found(patch: Patch) -> None:
    """The key of a page stays when a request is preempted and its pages go back."""

    def planted(right: Any, self: Any, page: int, no_cache: bool = False) -> bool:
        keys = dict(self.block_to_hash), dict(self.hash_to_block)
        free = right(self, page, no_cache)
        if no_cache:
            self.block_to_hash, self.hash_to_block = keys
        return bool(free)

    around(patch, BlockLedger, "release", planted)


def found_before_it_is_computed(patch: Patch) -> None:
    """A page can be found as soon as its tokens are known."""

    def planted(self: Any, state: Any, n: int) -> dict[str, int]:
        allocator = self.cache_allocators["full_attention"]
        count = (state.current_len() % allocator.tokens_per_page + n + 1) // allocator.tokens_per_page
        return {"full_attention": count} if count else {}

    patch.setattr(PagedAttentionCache, "count_new_complete_blocks", planted)


def forks_share_the_last_page(patch: Patch) -> None:
    """A fork has the page that is not full as well."""
    patch.setattr(CacheAllocator, "count_shareable_blocks", lambda self, name, n: len(self.block_table[name]))


def forks_are_copied_backwards(patch: Patch) -> None:
    """The new page of a fork is copied over the old one."""

    def planted(right: Any, self: Any, *args: Any) -> Any:
        old, new = right(self, *args)
        return new, old

    around(patch, CacheAllocator, "fork_blocks", planted)


def freed_twice(patch: Patch) -> None:
    """A page that goes back is free twice, now and then."""

    def planted(right: Any, self: Any, index: int, pages: list[int]) -> None:
        right(self, index, pages + [page for page in pages[:1] if page % 7 == 0])

    around(patch, CachePool, "free_blocks", planted)


def some_pages_are_lost(patch: Patch) -> None:
    """Of pages that go back the last does not."""
    around(
        patch,
        CachePool,
        "free_blocks",
        lambda right, self, index, pages: right(self, index, pages[:-1] if len(pages) > 2 else pages),
    )


def padding_is_given_out(patch: Patch) -> None:
    """The pages for padding are among the free ones, in the place of others."""

    def planted(right: Any, self: Any) -> None:
        right(self)
        self.free_sectors = [sector - 1 for sector in self.free_sectors]

    around(patch, CachePool, "reset", planted)


def same_pages_are_not_counted(patch: Patch) -> None:
    """A page that a request takes in the place of its own, as it has the same rows, is not counted as its own."""

    def planted(right: Any, self: Any, *args: Any) -> None:
        with patch.context() as inner:
            inner.setattr(BlockLedger, "acquire", lambda self, page: self.cached_blocks.pop(page, None))
            right(self, *args)

    around(patch, CacheAllocator, "mark_complete_blocks", planted)


def keys_of_the_page_before(patch: Patch) -> None:
    """The key of a page is of the tokens one position before."""

    def planted(right: Any, self: Any, name: str, tokens: list[int], n: int) -> None:
        right(self, name, [tokens[0], *tokens[:-1]], n)

    around(patch, CacheAllocator, "mark_complete_blocks", planted)


def found_pages_are_turned_round(patch: Patch) -> None:
    """The pages that a request finds stand in its table from the last to the first."""

    def planted(right: Any, self: Any, name: str, n: int, pages: list[int]) -> None:
        right(self, name, n, pages[: n // self.tokens_per_page][::-1])

    around(patch, CacheAllocator, "acquire_prefix_blocks", planted)


def pages_of_forks_are_not_counted(patch: Patch) -> None:
    """A page that a fork shares is not counted as its own."""

    def planted(right: Any, self: Any, *args: Any) -> Any:
        with patch.context() as inner:
            inner.setattr(BlockLedger, "acquire", lambda self, page: None)
            return right(self, *args)

    around(patch, CacheAllocator, "fork_blocks", planted)


def the_first_of_two_takes_all(patch: Patch) -> None:
    """A page that several have goes back with the first of them."""

    def planted(right: Any, self: Any, page: int, no_cache: bool = False) -> bool:
        self.shared_ref_counts.pop(page, None)
        return bool(right(self, page, no_cache))

    around(patch, BlockLedger, "release", planted)


def places_of_the_host_are_given_twice(patch: Patch) -> None:
    """A place on the host is free as soon as it is taken."""

    def planted(right: Any, self: Any, counts: dict[str, int]) -> Any:
        places = right(self, counts)
        for name, taken in (places or {}).items():
            self._cpu_pool.free_blocks(self.cache.cache_allocators[name].index, taken)
        return places

    around(patch, OffloadingManager, "_reserve_cpu_blocks", planted)


def doubles_are_lost(patch: Patch) -> None:
    """A page whose rows another one has already is given up, and does not go back."""

    def planted(right: Any, self: Any, *args: Any) -> None:
        with patch.context() as inner:
            inner.setattr(CachePool, "free_blocks", lambda *_: None)
            right(self, *args)

    around(patch, CacheAllocator, "mark_complete_blocks", planted)


FORKS = {"forks": 3, "behind": 0}
RULES: dict[Rule, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    keys_without_what_stands_before: ("full", ("STEP-8",), {}),
    short_keys: ("full", ("STEP-1", "STEP-8"), {}),
    one_page_more_is_skipped: ("full", ("STEP-2", "STEP-5"), {}),
    found_pages_are_not_counted: ("full", ("STEP-17", "STEP-31"), {}),
    pages_of_others_go_back: ("full", ("STEP-17", "STEP-18", "STEP-31"), {}),
    evicted_pages_are_found: ("full", ("STEP-9", "STEP-17", "STEP-18"), {}),
    preempted_pages_are_found: ("full", ("STEP-9", "STEP-17"), {}),
    found_before_it_is_computed: ("full", ("STEP-5", "STEP-16"), {}),
    forks_share_the_last_page: ("full", ("STEP-16",), FORKS),
    forks_are_copied_backwards: ("full", ("STEP-16", "STEP-27"), FORKS),
    freed_twice: ("full", ("STEP-17", "STEP-31"), {}),
    some_pages_are_lost: ("full", ("STEP-30",), {}),
    padding_is_given_out: ("full", ("STEP-20",), {}),
    same_pages_are_not_counted: ("full", ("STEP-17", "STEP-31"), {}),
    found_pages_are_turned_round: ("full", ("STEP-8",), {}),
    pages_of_forks_are_not_counted: ("full", ("STEP-17", "STEP-18", "STEP-31"), FORKS),
    the_first_of_two_takes_all: ("full", ("STEP-17", "STEP-18", "STEP-31"), {}),
    places_of_the_host_are_given_twice: ("full", ("STEP-29",), {"host": 50}),
    doubles_are_lost: ("full", ("STEP-30",), {}),
    keys_of_the_page_before: ("full", ("STEP-1", "STEP-8"), {}),
}
"""For each broken rule: the groups of layers of a life, the clauses that may tell it, and what else is given."""
