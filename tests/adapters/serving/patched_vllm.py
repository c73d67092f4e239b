"""Rules of vLLM's bookkeeping, each broken by a patch of a few lines. `RULES` says how each is shown."""

from __future__ import annotations

from typing import Any

from vllm.v1.core import block_pool, kv_cache_utils
from vllm.v1.core.block_pool import BlockPool
from vllm.v1.core.kv_cache_coordinator import KVCacheCoordinator
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.core.single_type_kv_cache_manager import (
    ChunkedLocalAttentionManager,
    FullAttentionManager,
    MambaManager,
    SingleTypeKVCacheManager,
    SlidingWindowManager,
)
from vllm.v1.simple_kv_offload.manager import SimpleCPUOffloadScheduler

from adapters.serving.rules import Patch, Rule, around


def keys_without_parents(patch: Patch) -> None:
    """The key of a block is of its own tokens alone."""
    around(
        patch, kv_cache_utils, "hash_block_tokens", lambda right, hashed, parent, *more: right(hashed, None, *more)
    )


def keys_of_first_tokens(patch: Patch) -> None:
    """The last token of a block is not in its key."""
    around(
        patch,
        kv_cache_utils,
        "hash_block_tokens",
        lambda right, hashed, parent, tokens, *more: right(hashed, parent, tokens[:-1], *more),
    )


def short_keys(patch: Patch) -> None:
    """Of a key there is one byte."""
    around(patch, kv_cache_utils, "hash_block_tokens", lambda right, *given: right(*given)[:1] * 32)


def keys_without_salts(patch: Patch) -> None:
    """The salt of a request is not in its keys."""

    def planted(right: Any, request: Any, *more: Any) -> Any:
        salt, request.cache_salt = request.cache_salt, None
        try:
            return right(request, *more)
        finally:
            request.cache_salt = salt

    around(patch, kv_cache_utils, "generate_block_hash_extra_keys", planted)


def keys_without_adapters(patch: Patch) -> None:
    """The adapter of a request is not in its keys."""
    patch.setattr(kv_cache_utils, "_gen_lora_extra_hash_keys", lambda request: [])


def one_key_for_all_groups(patch: Patch) -> None:
    """A block of one group of layers is found by all."""
    around(patch, block_pool, "make_block_hash_with_group_id", lambda right, hashed, group: right(hashed, 0))


def found_after_eviction(patch: Patch) -> None:
    """A block is found under its old key after it was given to others."""

    def planted(self: Any, block: Any) -> list[Any]:
        block.reset_hash()
        return []

    patch.setattr(BlockPool, "_remove_cached_block_hashes", planted)


def cached_before_computed(patch: Patch) -> None:
    """All blocks of a prompt can be found as soon as it begins."""
    right = KVCacheCoordinator.cache_blocks
    patch.setattr(
        KVCacheCoordinator, "cache_blocks", lambda self, request, n: right(self, request, request.num_tokens)
    )


def windows_are_not_asked(patch: Patch) -> None:
    """A group with a window has all that the others have."""

    def planted(cls: Any, block_hashes: Any, max_length: int, block_pool: Any, **more: Any) -> Any:
        size = more["kv_cache_spec"].block_size
        blocks = [block_pool.null_block] * (max_length // size)
        return tuple(list(blocks) for _ in more["kv_cache_group_ids"]), len(blocks) * size

    patch.setattr(SlidingWindowManager, "find_longest_cache_hit", classmethod(planted))


def too_few_blocks_of_a_window(patch: Patch) -> None:
    """A prefix is gone on from where one block of those that its window reaches into is there."""
    patch.setattr(SlidingWindowManager, "_contiguous_blocks_for_hit", staticmethod(lambda *_, **__: 1))


def window_let_go_too_soon(patch: Patch) -> None:
    """A window lets go of a block whose last row the next query still sees."""
    around(patch, SlidingWindowManager, "get_num_skipped_tokens", lambda right, self, n: right(self, n + 1))


def chunk_let_go_too_soon(patch: Patch) -> None:
    """A chunk lets go of its first block."""
    around(
        patch,
        ChunkedLocalAttentionManager,
        "get_num_skipped_tokens",
        lambda right, self, n: right(self, n) + self.block_size if n > self.block_size else 0,
    )


def state_let_go_too_soon(patch: Patch) -> None:
    """The state behind the last computed token is let go."""
    around(patch, MambaManager, "get_num_skipped_tokens", lambda right, self, n: right(self, n) + self.block_size)


def states_of_the_same_step(patch: Patch) -> None:
    """A state that is computed in a step can be found in the same step."""
    around(
        patch,
        MambaManager,
        "get_num_blocks_to_allocate",
        lambda right, self, *args, **more: (self.cached_blocks_this_step.clear(), right(self, *args, **more))[1],
    )


def found_blocks_are_not_counted(patch: Patch) -> None:
    """A block that is found stays free."""

    def planted(self: Any, blocks: Any) -> None:
        for block in blocks:
            block.ref_cnt += block.ref_cnt > 0

    patch.setattr(BlockPool, "touch", planted)


def given_out_and_free(patch: Patch) -> None:
    """A block that is given out stays behind the free ones."""

    def planted(right: Any, self: Any, count: int) -> Any:
        blocks = right(self, count)
        if blocks and blocks[0].block_id % 5 == 0:
            blocks[0].ref_cnt = 0
            self.free_block_queue.append(blocks[0])
        return blocks

    around(patch, BlockPool, "get_new_blocks", planted)


def the_null_block_is_given_out(patch: Patch) -> None:
    """The null block is among the free ones, in the place of another."""

    def planted(right: Any, self: Any, *args: Any, **more: Any) -> None:
        right(self, *args, **more)
        self.free_block_queue.popleft()
        self.free_block_queue.append(self.null_block)

    around(patch, BlockPool, "__init__", planted)


def last_block_is_kept(patch: Patch) -> None:
    """The first of several blocks that go back does not."""
    around(patch, SingleTypeKVCacheManager, "pop_blocks_for_free", lambda right, self, name: right(self, name)[:-1])


def preempted_and_goes_on(patch: Patch) -> None:
    """A request that is preempted goes on where it was, with new blocks."""

    def planted(right: Any, self: Any, request: Any, *args: Any, **more: Any) -> None:
        computed = min(request.num_computed_tokens, request.num_tokens - 1) // self.block_size * self.block_size
        right(self, request, *args, **more)
        request.num_computed_tokens = computed

    around(patch, Scheduler, "_preempt_request", planted)


def freed_while_it_runs(patch: Patch) -> None:
    """The newest block of a request goes back while it runs."""

    def planted(right: Any, self: Any, request: Any, *args: Any, **more: Any) -> Any:
        new = right(self, request, *args, **more)
        blocks = self.get_blocks(request.request_id).blocks[0]
        if new is not None and len(blocks) > 3 and blocks[-1].ref_cnt == 1:
            blocks[-1].ref_cnt = 0
            self.block_pool.free_block_queue.append(blocks[-1])
        return new

    around(patch, KVCacheManager, "allocate_slots", planted)


def one_block_too_few(patch: Patch) -> None:
    """A block is given as soon as its second row is written."""
    around(
        patch,
        SingleTypeKVCacheManager,
        "allocate_new_blocks",
        lambda right, self, name, tokens, *more: right(self, name, max(1, tokens - 1), *more),
    )


def rejected_drafts_stay(patch: Patch) -> None:
    """One rejected draft of a step counts as computed."""

    def step(right: Any, self: Any, output: Any, computed: Any) -> Any:
        self.drafted = output.scheduled_spec_decode_tokens
        return right(self, output, computed)

    def planted(right: Any, self: Any, request: Any, tokens: list[int], **more: Any) -> Any:
        request.num_computed_tokens += len(self.drafted.get(request.request_id, ())) >= len(tokens)
        return right(self, request, tokens, **more)

    around(patch, Scheduler, "update_from_output", step)
    around(patch, Scheduler, "_update_request_with_output", planted)


def hits_in_the_wrong_order(patch: Patch) -> None:
    """The blocks that are found stand in the table the other way round."""
    right = FullAttentionManager.find_longest_cache_hit.__func__

    def planted(cls: Any, *args: Any, **more: Any) -> Any:
        blocks, length = right(cls, *args, **more)
        return tuple(table[::-1] for table in blocks), length

    patch.setattr(FullAttentionManager, "find_longest_cache_hit", classmethod(planted))


def a_reset_forgets_nothing(patch: Patch) -> None:
    """A reset says that it is done, and forgets nothing."""
    patch.setattr(KVCacheManager, "reset_prefix_cache", lambda self: True)


def kept_as_others(patch: Patch) -> None:
    """Pages that go to the host together are kept under each other's keys."""
    around(
        patch,
        SimpleCPUOffloadScheduler,
        "_process_store_completion",
        lambda right, self, pages, places, *more: right(self, pages, places[::-1], *more),
    )


def loaded_in_the_wrong_order(patch: Patch) -> None:
    """Pages that come from the host together go to each other's places."""

    def planted(right: Any, self: Any, output: Any) -> Any:
        moved = right(self, output)
        moved.load_gpu_blocks.reverse()
        return moved

    around(patch, SimpleCPUOffloadScheduler, "build_connector_meta", planted)


def computed_before_it_is_loaded(patch: Patch) -> None:
    """A request goes on before its pages have come from the host."""
    around(
        patch,
        SimpleCPUOffloadScheduler,
        "get_num_new_matched_tokens",
        lambda right, self, *given: (right(self, *given)[0], False),
    )


def the_host_forgets_nothing(patch: Patch) -> None:
    """A reset leaves what is on the host."""
    patch.setattr(SimpleCPUOffloadScheduler, "reset", lambda self: True)


RULES: dict[Rule, tuple[str, tuple[str, ...], dict[str, int]]] = {
    keys_without_parents: ("full", ("STEP-8", "STEP-12"), {}),
    keys_of_first_tokens: ("full", ("STEP-8",), {}),
    short_keys: ("full", ("STEP-8",), {}),
    keys_without_salts: ("full", ("STEP-12",), {}),
    keys_without_adapters: ("full", ("STEP-10",), {}),
    one_key_for_all_groups: ("full,window 6", ("STEP-14", "STEP-18"), {}),
    found_after_eviction: ("full", ("STEP-9",), {}),
    cached_before_computed: ("full", ("STEP-5",), {}),
    windows_are_not_asked: ("full,window 6", ("STEP-7",), {}),
    too_few_blocks_of_a_window: ("full,window 6", ("STEP-7",), {}),
    window_let_go_too_soon: ("full,window 6", ("STEP-4",), {}),
    chunk_let_go_too_soon: ("full,chunk 8", ("STEP-4",), {}),
    state_let_go_too_soon: ("full,state", ("STEP-4",), {}),
    states_of_the_same_step: ("full,state", ("STEP-5",), {}),
    found_blocks_are_not_counted: ("full", ("STEP-31",), {}),
    given_out_and_free: ("full", ("STEP-31",), {}),
    the_null_block_is_given_out: ("full", ("STEP-20",), {}),
    last_block_is_kept: ("full", ("STEP-30",), {}),
    preempted_and_goes_on: ("full", ("STEP-5", "STEP-8"), {}),
    freed_while_it_runs: ("full", ("STEP-31",), {}),
    one_block_too_few: ("full", ("STEP-19",), {}),
    rejected_drafts_stay: ("full", ("STEP-3",), {"drafts": 3, "behind": 0}),
    hits_in_the_wrong_order: ("full", ("STEP-8",), {}),
    a_reset_forgets_nothing: ("full", ("STEP-15",), {}),
    kept_as_others: ("full", ("STEP-29",), {"offloads": True}),
    loaded_in_the_wrong_order: ("full", ("STEP-29",), {"offloads": True}),
    computed_before_it_is_loaded: ("full", ("STEP-5", "STEP-8", "STEP-16"), {"offloads": True}),
    the_host_forgets_nothing: ("full", ("STEP-15",), {"offloads": True}),
}
"""A patch: the groups that it is shown with, the clauses that may be broken, and what else is fixed in a life."""
