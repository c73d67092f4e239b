"""Writes down what SGLang's scheduler decides: a log of steps, which `kvconform check LOG` judges.

    KVSTEPS=steps.jsonl python -m sglang.launch_server --model-path MODEL

SGLang finds `register` by itself, as a plugin, where kvconform is installed. Of several ranks of one engine the
first writes. Full layers are told, and layers with a window beside them. Drafts, states, rows on the host and a
prefill apart from decoding are not told: an engine that has them is refused when it starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import get_parallel

from kvadapters.serving.step_log import VARIABLE, StepLog, Tables, log_path

ONE_POOL = ("TokenToKVPoolAllocator", "PagedTokenToKVPoolAllocator")
TWO_POOLS = "SWATokenToKVPoolAllocator"
"""The classes that hand out slots: of one pool; of one for full layers and one for those with a window."""

LEFT_OUT: dict[str, Callable[[Any], bool]] = {
    "drafts": lambda scheduler: not scheduler.spec_algorithm.is_none(),
    "states": lambda scheduler: scheduler.is_hybrid_ssm,
    "rows on the host": lambda scheduler: scheduler.enable_hierarchical_cache,
    "a prefill apart from decoding": lambda scheduler: scheduler.disaggregation_mode.value != "null",
}
"""What a log does not tell, and whether an engine has it."""


class SglangSteps(StepLog):
    """The log of a scheduler from its start on. Raises ValueError for an engine that it cannot tell of."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler, self.allocator = scheduler, scheduler.token_to_kv_pool_allocator
        demand(scheduler)
        self.slots, self.page = scheduler.req_to_token_pool.req_to_token, self.allocator.page_size
        self.windows = type(self.allocator).__name__ == TWO_POOLS
        self.alive: dict[str, Any] = {}
        """The requests that came and have not ended."""
        groups: list[dict[str, Any]] = [{"block": self.page, "view": "full"}]
        sizes = [self.allocator.size]
        if self.windows:
            pools = (self.allocator.full_attn_allocator, self.allocator.swa_attn_allocator)
            sizes = [pool.size for pool in pools]
            window = scheduler.sliding_window_size + 1  # SGLang counts the rows before the query's own
            groups.append({"block": self.page, "view": f"window {window}", "pool": 1})
        pages = [size // self.page + 1 for size in sizes]
        super().__init__(path(), engine="sglang", pages=pages, reserved=[0], groups=groups)

    def added(self, request: Any) -> None:
        """Tell of a request that comes for the first time."""
        if request.rid in self.alive:
            return
        self.alive[request.rid] = request
        told = {"adapter": request.lora_id, "salt": salt(request), "media": media(request)}
        tokens = list(request.origin_input_ids)
        self.write(add=request.rid, tokens=tokens, **{name: value for name, value in told.items() if value})

    def running(self, batch: Any) -> None:
        """Tell which rows a step computes: the new ones of a prompt, or that of a request's last token."""
        if batch.forward_mode.is_extend():
            parts = list(zip(batch.prefix_lens, batch.extend_lens, strict=True))
        else:
            parts = [(length - 1, 1) for length in batch.seq_lens_cpu.tolist()]
        self.swapped()
        self.hold({each.rid: self.part(each, *part) for each, part in zip(batch.reqs, parts, strict=True)})

    def part(self, request: Any, start: int, n: int) -> dict[str, Any]:
        """Tell what a step computes of a request."""
        return {"start": start, "n": n, **self.told(request.rid, self.pages_of(request, start + n))}

    def swapped(self) -> None:
        """Tell which requests got other pages: those of the tree that have the same rows, or none for rows that a
        window has left."""
        for name, told in self.tables.items():
            now = self.pages_of(self.alive[name], len(told[0]) * self.page)
            if now != told:
                self.tables[name] = now
                self.write(swap=name, tables=now)

    def pages_of(self, request: Any, rows: int) -> Tables:
        """Give the pages that so many rows of a request lie in, for each group."""
        slots = self.slots[request.kv.req_pool_idx, : rows : self.page].long()
        each = [slots, *([self.allocator.full_to_swa_index_mapping[slots]] if self.windows else [])]
        return [(found // self.page).tolist() for found in each]

    def updated(self, texts: dict[str, tuple[Any, int]]) -> None:
        """Tell which tokens a step chose: those that its requests have now, and did not have before."""
        self.release({name: list(each.output_ids[n:]) for name, (each, n) in texts.items() if each.output_ids[n:]})
        self.swapped()
        self.write(left=self.left())

    def left(self) -> list[int]:
        """Count the pages of each pool that are free, or that the tree may evict."""
        pool, tree = self.allocator, self.scheduler.tree_cache
        free = [pool.available_size() + tree.evictable_size()]
        if self.windows:
            full = pool.full_available_size() + tree.full_evictable_size()
            free = [full, pool.swa_available_size() + tree.swa_evictable_size()]
        return [slots // self.page for slots in free]

    def gone(self, request: Any, ended: bool) -> None:
        """Tell that the pages of a request go back, or that it has ended."""
        self.freed(request.rid, ended and request.rid in self.alive)
        if ended:
            self.alive.pop(request.rid, None)


def demand(scheduler: Any) -> None:
    """Raise ValueError for an engine that a log cannot tell of."""
    has = [what for what, found in LEFT_OUT.items() if found(scheduler)]
    kind = type(scheduler.token_to_kv_pool_allocator).__name__
    if kind not in (*ONE_POOL, TWO_POOLS):
        has.append(f"slots from {kind}")
    if has:
        raise ValueError(f"a log of steps cannot tell {', '.join(has)} of SGLang; unset {VARIABLE}")


def path() -> Path:
    """Say where the log goes. Raises ValueError."""
    parallel: Any = get_parallel()
    return log_path(parallel.dp_size, parallel.dp_rank or 0)


def salt(request: Any) -> str:
    """Give what keeps the rows of a request apart: its salt, and its key without the adapter's name."""
    key = (request.extra_key or "").removesuffix(request.lora_id or "")
    return json.dumps([request.cache_salt, key]) if request.cache_salt or key else ""


def media(request: Any) -> list[list[Any]]:
    """Say where images and others stand in a prompt, and what is in them."""
    items = request.multimodal_inputs.mm_items if request.multimodal_inputs else ()
    return [[begin, str(item.hash)] for item in items for begin, _ in item.offsets or ()]


def attach(scheduler: Any) -> None:
    """Begin a log with a scheduler. Its pool of requests knows it as well, since pages go back there."""
    scheduler.step_log = scheduler.req_to_token_pool.step_log = SglangSteps(scheduler)


def started(_: None, scheduler: Any, *args: Any, **more: Any) -> None:
    """Begin a log, on the first rank."""
    if get_parallel().tp_rank == get_parallel().pp_rank == 0:
        attach(scheduler)


def came(_: None, scheduler: Any, request: Any, *args: Any, **more: Any) -> None:
    """Tell that a request came, or came again."""
    if hasattr(scheduler, "step_log"):
        scheduler.step_log.added(request)


def runs(scheduler: Any, batch: Any, *args: Any, **more: Any) -> None:
    """Tell of a step that begins."""
    if hasattr(scheduler, "step_log") and batch.reqs:
        scheduler.step_log.running(batch)


def takes(right: Callable[..., Any], scheduler: Any, batch: Any, *args: Any, **more: Any) -> Any:
    """Tell which tokens a step chose."""
    texts = {each.rid: (each, len(each.output_ids)) for each in batch.reqs}
    done = right(scheduler, batch, *args, **more)
    if hasattr(scheduler, "step_log") and batch.reqs:
        scheduler.step_log.updated(texts)
    return done


def frees(pool: Any, request: Any, *args: Any, **more: Any) -> None:
    """Tell that the pages of a request go back."""
    if hasattr(pool, "step_log"):
        pool.step_log.gone(request, request.finished())


def aborts(scheduler: Any, _: Any, request: Any) -> None:
    """Tell that a request has ended before its time."""
    if hasattr(scheduler, "step_log"):
        scheduler.step_log.gone(request, ended=True)


def forgets(done: bool, scheduler: Any, *args: Any, **more: Any) -> None:
    """Tell that all that was computed is forgotten."""
    if done and hasattr(scheduler, "step_log"):
        scheduler.step_log.write(reset=True)


SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
HOOKS: dict[str, tuple[Callable[..., Any], HookType]] = {
    f"{SCHEDULER}.__init__": (started, HookType.AFTER),
    f"{SCHEDULER}._add_request_to_queue": (came, HookType.AFTER),
    f"{SCHEDULER}.run_batch": (runs, HookType.BEFORE),
    f"{SCHEDULER}.process_batch_result": (takes, HookType.AROUND),
    f"{SCHEDULER}.send_abort_output": (aborts, HookType.BEFORE),
    f"{SCHEDULER}.flush_cache": (forgets, HookType.AFTER),
    "sglang.srt.mem_cache.memory_pool.ReqToTokenPool.free": (frees, HookType.BEFORE),
}
"""What of SGLang tells the log, and when."""


def register() -> None:
    """Hook the log into SGLang, if the environment asks for one."""
    if os.environ.get(VARIABLE):
        for target, (hook, when) in HOOKS.items():
            HookRegistry.register(target, hook, when)
