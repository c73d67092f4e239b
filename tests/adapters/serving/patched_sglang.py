"""Rules of SGLang's bookkeeping, each broken by a patch of a few lines. `RULES` says how each is shown."""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.unified_cache.components.full import FullComponent
from sglang.srt.mem_cache.unified_cache.components.swa import SWAComponent
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

from adapters.serving.rules import Patch, Rule, around


def keys_without_salts(patch: Patch) -> None:
    """The salt of a request is not in its keys."""

    def planted(right: Any, self: Any, *args: Any, **more: Any) -> None:
        right(self, *args, **more)
        self.cache_salt = None

    around(patch, RadixKey, "__init__", planted)


def keys_without_adapters(patch: Patch) -> None:
    """The adapter of a request is not in its keys."""

    def planted(right: Any, self: Any, *args: Any, **more: Any) -> None:
        right(self, *args, **more)
        self.extra_key = None

    around(patch, RadixKey, "__init__", planted)


def one_page_too_many_matches(patch: Patch) -> None:
    """Texts match up to the page behind the one in which they part."""

    def planted(right: Any, self: Any, other: Any, offset: int, page_size: int = 1) -> int:
        n = right(self, other, offset, page_size)
        most = min(len(self), len(other) - offset) // page_size * page_size
        return min(n + page_size, most) if n else n

    around(patch, RadixKey, "match_at", planted)


def all_tokens_are_found(patch: Patch) -> None:
    """A prompt that is there as a whole is found as a whole."""
    patch.setattr(Req, "_compute_max_prefix_len", lambda self, n: n)


def found_rows_are_not_locked(patch: Patch) -> None:
    """What a request has found can be evicted while it runs."""
    patch.setattr(FullComponent, "acquire_component_lock", lambda self, node, result, *args, **more: result)
    patch.setattr(FullComponent, "release_component_lock", lambda *args, **more: None)


def freed_twice(patch: Patch) -> None:
    """A slot that goes back is free twice, now and then."""

    def planted(right: Any, self: Any, slots: Any) -> None:
        right(self, slots)
        if slots.numel() and int(slots[0]) % 7 == 0:
            right(self, slots[:1])

    around(patch, TokenToKVPoolAllocator, "free", planted)


def some_pages_are_lost(patch: Patch) -> None:
    """Of pages that go back the last does not."""
    around(
        patch,
        PagedTokenToKVPoolAllocator,
        "free_page_ids",
        lambda right, self, pages: right(self, pages[:-1] if len(pages) > 1 else pages),
    )


def page_0_is_given_out(patch: Patch) -> None:
    """The page for padding is among the free ones, in the place of another."""

    def planted(right: Any, self: Any) -> None:
        right(self)
        self.free_pages = self.free_pages - 1

    around(patch, PagedTokenToKVPoolAllocator, "clear", planted)


def next_slot_without_a_page(patch: Patch) -> None:
    """A token goes to the slot behind the last one, also where that is another page."""
    patch.setattr(
        PagedTokenToKVPoolAllocator, "alloc_decode", lambda self, lengths, lengths_cpu, last, *_, **__: last + 1
    )


def own_pages_stay_in_the_table(patch: Patch) -> None:
    """A request goes on in its own pages, which went back since the tree has the same rows."""

    def planted(right: Any, self: Any, where: Any, values: Any) -> None:
        row, part = where
        if not (isinstance(part, slice) and isinstance(row, int) and self.in_checkpoint):
            right(self, where, values)

    def checkpoint(right: Any, self: Any, *args: Any, **more: Any) -> None:
        self.req_to_token_pool.in_checkpoint = True
        try:
            right(self, *args, **more)
        finally:
            self.req_to_token_pool.in_checkpoint = False

    patch.setattr(ReqToTokenPool, "in_checkpoint", False, raising=False)
    around(patch, ReqToTokenPool, "write", planted)
    around(patch, UnifiedRadixCache, "checkpoint_into_tree", checkpoint)


def window_let_go_too_soon(patch: Patch) -> None:
    """Rows go back that the window of the next query still sees."""
    around(
        patch,
        UnifiedRadixCache,
        "evict_sliding_windows",
        lambda right, self, request, n, **more: right(self, request, n + 3 * self.page_size, **more),
    )


def windows_are_not_asked(patch: Patch) -> None:
    """A prefix is found also where its last rows are gone from the window's pool."""
    patch.setattr(SWAComponent, "create_match_validator", lambda self, *_, **__: lambda node: True)


def slots_of_a_window_are_not_named_anew(patch: Patch) -> None:
    """A slot of full layers keeps the slot of the window's pool that it had before."""

    def planted(right: Any, self: Any, full: Any, window: Any) -> None:
        new = self.full_to_swa_index_mapping[full] <= 0
        right(self, full[new], window[new])

    around(patch, SWATokenToKVPoolAllocator, "set_full_to_swa_mapping", planted)
    patch.setattr(SWATokenToKVPoolAllocator, "clear_full_to_swa_mapping", lambda *_: None)


def a_reset_forgets_nothing(patch: Patch) -> None:
    """A reset says that it is done, and forgets nothing."""
    for owner in (UnifiedRadixCache, PagedTokenToKVPoolAllocator, ReqToTokenPool):
        name = "reset" if owner is UnifiedRadixCache else "clear"
        right = getattr(owner, name)

        def planted(self: Any, right: Any = right) -> None:
            if not hasattr(self, "begun"):
                self.begun = True
                right(self)

        patch.setattr(owner, name, planted)


def a_row_goes_back_while_it_runs(patch: Patch) -> None:
    """The newest page of a request goes back while it runs."""

    def planted(right: Any, self: Any, lengths: Any, lengths_cpu: Any, last: Any, *args: Any, **more: Any) -> Any:
        slots = right(self, lengths, lengths_cpu, last, *args, **more)
        if slots is not None and int(lengths_cpu[0]) % self.page_size == 1 and int(slots[0]) % 5 == 0:
            self.free_pages = torch.cat((self.free_pages, slots[:1] // self.page_size))
        return slots

    around(patch, PagedTokenToKVPoolAllocator, "alloc_decode", planted)


def prompts_get_pages_that_stay_free(patch: Patch) -> None:
    """Of the pages that a prompt gets, the last one is still free, now and then."""

    def planted(right: Any, self: Any, *args: Any, **more: Any) -> Any:
        slots = right(self, *args, **more)
        if slots is not None and slots.numel() and int(slots[-1]) % 5 == 0:
            self.free_pages = torch.cat((self.free_pages, slots[-1:] // self.page_size))
        return slots

    around(patch, PagedTokenToKVPoolAllocator, "alloc_extend", planted)


def two_get_one_slot(patch: Patch) -> None:
    """Of requests that get a new page in one step, the first two get the same."""

    def planted(right: Any, self: Any, lengths: Any, *args: Any, **more: Any) -> Any:
        slots = right(self, lengths, *args, **more)
        new = [] if slots is None else [i for i, n in enumerate(lengths.tolist()) if n % self.page_size == 1]
        if len(new) > 1:
            slots[new[1]] = slots[new[0]]
        return slots

    around(patch, PagedTokenToKVPoolAllocator, "alloc_decode", planted)


def pages_of_windows_are_lost(patch: Patch) -> None:
    """Of the pages that a window no longer sees the last does not go back."""
    around(
        patch,
        SWATokenToKVPoolAllocator,
        "_free_swa_pages_none_cuda",
        lambda right, self, slots: right(self, slots)[:-1],
    )


def doubles_are_lost(patch: Patch) -> None:
    """A request's own pages do not go back where the tree had the same rows already."""
    patch.setattr(UnifiedRadixCache, "_drain_device_frees", lambda *_, **__: None)


def found_before_they_are_computed(patch: Patch) -> None:
    """Of a prompt that is computed in chunks, the page behind a chunk can be found when the chunk is computed."""

    def planted(right: Any, self: Any, request: Any, *, up_to: int, **more: Any) -> None:
        right(self, request, up_to=min(up_to + self.page_size, len(request.origin_input_ids)), **more)

    around(patch, UnifiedRadixCache, "checkpoint_into_tree", planted)


IN_PYTHON: dict[str, Any] = {"core": "python"}
"""What is patched of the tree is not in Rust."""

RULES: dict[Rule, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    keys_without_salts: ("full", ("STEP-12",), IN_PYTHON),
    keys_without_adapters: ("full", ("STEP-10", "STEP-12"), IN_PYTHON),
    one_page_too_many_matches: ("full", ("STEP-8",), {"page": 2, **IN_PYTHON}),
    all_tokens_are_found: ("full", ("STEP-6",), {"page": 1}),
    found_rows_are_not_locked: ("full", ("STEP-17", "STEP-31"), IN_PYTHON),
    freed_twice: ("full", ("STEP-17", "STEP-31"), {"page": 1}),
    some_pages_are_lost: ("full", ("STEP-30",), {"page": 2}),
    page_0_is_given_out: ("full", ("STEP-20",), {"page": 4}),
    next_slot_without_a_page: ("full", ("STEP-17", "STEP-20", "STEP-30"), {"page": 2}),
    own_pages_stay_in_the_table: ("full", ("STEP-17", "STEP-31"), {"page": 2}),
    window_let_go_too_soon: ("full,window 6", ("STEP-4",), {}),
    windows_are_not_asked: ("full,window 6", ("STEP-7",), IN_PYTHON),
    slots_of_a_window_are_not_named_anew: ("full,window 6", ("STEP-17", "STEP-18", "STEP-31"), {}),
    a_reset_forgets_nothing: ("full", ("STEP-15",), {"page": 2}),
    a_row_goes_back_while_it_runs: ("full", ("STEP-17", "STEP-31"), {"page": 2}),
    prompts_get_pages_that_stay_free: ("full", ("STEP-17", "STEP-31"), {"page": 2}),
    two_get_one_slot: ("full", ("STEP-17", "STEP-31"), {"page": 2}),
    pages_of_windows_are_lost: ("full,window 6", ("STEP-30",), {}),
    doubles_are_lost: ("full", ("STEP-30",), {}),
    found_before_they_are_computed: ("full", ("STEP-5", "STEP-20"), {"page": 2}),
}
"""A patch: the groups that it is shown with, the clauses that may be broken, and what else is fixed in a life."""
