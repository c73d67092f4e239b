"""Writes down what vLLM's scheduler decides: a log of steps, which `kvconform check LOG` judges.

    KVSTEPS=steps.jsonl vllm serve MODEL --scheduler-cls kvadapters.serving.vllm_steps.LoggedScheduler

`LoggedAsyncScheduler` is for asynchronous scheduling, which is vLLM's default. Of connectors, what
SimpleCPUOffloadConnector keeps on the host is told, and nothing of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from kvadapters.serving.step_log import StepLog, log_path

VIEWS: dict[str, Callable[[Any], str]] = {
    "FullAttentionSpec": lambda spec: f"window {spec.sliding_window}" if spec.sliding_window else "full",
    "MLAAttentionSpec": lambda spec: "full",
    "SlidingWindowSpec": lambda spec: f"window {spec.sliding_window}",
    "SlidingWindowMLASpec": lambda spec: f"window {spec.sliding_window}",
    "ChunkedLocalAttentionSpec": lambda spec: f"chunk {spec.attention_chunk_size}",
    "MambaSpec": lambda spec: "state",
}
"""What the queries of a group see, by the class of its layout."""


class Offloads:
    """What SimpleCPUOffloadConnector moves. A transfer is told when it is done: until then it may read the pages it
    reads, and write those that it writes."""

    def __init__(self, log: StepLog) -> None:
        self.log = log
        self.stores: dict[int, Pairs] = {}
        self.loads: dict[int, tuple[Pairs, frozenset[str]]] = {}
        """What is on its way; a load is for requests, of which it is told that theirs is done."""

    def begun(self, moved: Any) -> None:
        """Remember what a step moves."""
        if getattr(moved, "store_event", -1) >= 0:
            self.stores[moved.store_event] = pairs(moved.store_gpu_blocks, moved.store_cpu_blocks)
        if getattr(moved, "load_event", -1) >= 0:
            requests = frozenset(moved.load_event_to_reqs[moved.load_event])
            self.loads[moved.load_event] = pairs(moved.load_gpu_blocks, moved.load_cpu_blocks), requests

    def done(self, told: Any) -> None:
        """Tell what has been moved."""
        if told is None:
            return
        for event in getattr(told.kv_connector_worker_meta, "completed_store_events", ()):
            self.log.write(offload=[[page, key] for page, key in self.stores.pop(event)])
        ready = told.finished_recving or set()
        for event in [event for event, (_, requests) in self.loads.items() if requests & ready]:
            self.log.write(load=[[key, page] for page, key in self.loads.pop(event)[0]])


Pairs = list[tuple[int, str]]
"""Pages, and the keys that they are kept as."""


def pairs(pages: list[int], kept: list[int]) -> Pairs:
    """Name the places on the host."""
    return [(page, f"host {place}") for page, place in zip(pages, kept, strict=True)]


class VllmSteps(StepLog):
    """The log of a scheduler from its start on. Of a step that is held back it knows what the scheduler gave, and
    how often each of its requests had been preempted."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler, self.manager = scheduler, scheduler.kv_cache_manager
        config, parallel = scheduler.kv_cache_config, scheduler.parallel_config
        groups = [group(each.kv_cache_spec) for each in config.kv_cache_groups]
        null = self.manager.block_pool.null_block.block_id
        path = log_path(parallel.data_parallel_size, parallel.data_parallel_index)
        super().__init__(path, engine="vllm", pages=config.num_blocks, reserved=[null], groups=groups)
        self.offloads = Offloads(self)

    def added(self, request: Any) -> None:
        """Tell of a request."""
        media = [[each.mm_position.offset, each.identifier] for each in request.mm_features or ()]
        told = {"salt": request.cache_salt, "media": media}
        told |= {"adapter": request.lora_request.lora_name} if request.lora_request else {}
        tokens = list(request.all_token_ids)
        self.write(add=request.request_id, tokens=tokens, **{name: value for name, value in told.items() if value})

    def scheduled(self, output: Any) -> None:
        """Tell which pages are copied or zeroed, and what is computed behind that."""
        if output.kv_cache_block_copies:
            self.write(copy=[[each.src_block_id, each.dst_block_id] for each in output.kv_cache_block_copies])
        if output.new_block_ids_to_zero:
            self.write(zero=list(output.new_block_ids_to_zero))
        if output.num_scheduled_tokens:
            parts = {name: self.part(name, n, output) for name, n in output.num_scheduled_tokens.items()}
            lives = {name: self.scheduler.requests[name].num_preemptions for name in parts}
            self.hold(parts, (output, lives))
        self.offloads.begun(output.kv_connector_metadata)

    def part(self, name: str, n: int, output: Any) -> dict[str, Any]:
        """Tell what a step computes of a request. The scheduler has counted it as computed already."""
        request = self.scheduler.requests[name]
        drafts = output.scheduled_spec_decode_tokens.get(name)
        told = {"start": request.num_computed_tokens - n, "n": n, **({"drafts": list(drafts)} if drafts else {})}
        return told | self.told(name, [list(table) for table in self.manager.get_block_ids(name)])

    def texts(self, output: Any) -> dict[str, tuple[Any, int]]:
        """Give the requests of a step that are there before its tokens are taken, and how many tokens each has."""
        found = ((name, self.scheduler.requests.get(name)) for name in output.num_scheduled_tokens)
        return {name: (each, each.num_tokens) for name, each in found if each is not None}

    def updated(self, output: Any, computed: Any, texts: dict[str, tuple[Any, int]]) -> None:
        """Tell which tokens a step chose, and write the step, which was held back for them."""
        if self.held and self.held[0].about[0] is output:
            each = output.num_scheduled_tokens
            chosen = {name: tokens for name in each if (tokens := self.tokens(name, computed, texts))}
            self.correct(chosen)
            self.release(chosen)
        self.offloads.done(computed.kv_connector_output)
        if not self.on_their_way():
            self.write(left=self.manager.block_pool.get_num_free_blocks())

    def on_their_way(self) -> bool:
        """Tell whether there are pages that are not free, and that no request is told to have."""
        scheduler, connector = self.scheduler, self.scheduler.connector
        moved = self.offloads.loads or (connector is not None and connector.has_pending_push_work())
        return bool(moved or scheduler.deferred_frees or scheduler.kv_holding_waiting)

    def tokens(self, name: str, computed: Any, texts: dict[str, tuple[Any, int]]) -> list[int]:
        """Give the tokens that a request got; for a request that has gone, those that the device computed."""
        if name in texts:
            request, n = texts[name]
            return list(request.all_token_ids[n:])
        if not computed.sampled_token_ids:
            return []
        return list(computed.sampled_token_ids[computed.req_id_to_index[name]])

    def correct(self, chosen: dict[str, list[int]]) -> None:
        """Let steps that were decided before the drafts of the first were rejected begin where it ends."""
        output, lives = self.held[0].about
        for name, drafts in output.scheduled_spec_decode_tokens.items():
            rejected = len(drafts) + 1 - len(chosen.get(name, ()))
            for later in list(self.held)[1:]:
                if later.about[1].get(name) == lives[name]:
                    later.lines[0]["step"][name]["start"] -= rejected


def group(spec: Any) -> dict[str, Any]:
    """Describe a group of layers. Raises ValueError for one that a log cannot tell."""
    spec = next(iter(spec.kv_cache_specs.values())) if hasattr(spec, "kv_cache_specs") else spec
    kind = type(spec).__name__
    if kind not in VIEWS:
        raise ValueError(f"a log of steps cannot tell a group with {kind}; it tells {', '.join(VIEWS)}")
    return {"block": spec.block_size, "view": VIEWS[kind](spec)}


class Logging:
    """What the two schedulers below have in common: each tells what it does."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.step_log = VllmSteps(self)

    def add_request(self, request: Any) -> None:
        """Add a request."""
        super().add_request(request)  # type: ignore[misc]
        self.step_log.added(request)

    def schedule(self, *args: Any, **more: Any) -> Any:
        """Decide a step."""
        output = super().schedule(*args, **more)  # type: ignore[misc]
        self.step_log.scheduled(output)
        return output

    def update_from_output(self, output: Any, computed: Any) -> Any:
        """Take what a step computed."""
        texts = self.step_log.texts(output)
        found = super().update_from_output(output, computed)  # type: ignore[misc]
        self.step_log.updated(output, computed, texts)
        return found

    def _free_request_blocks(self, request: Any) -> None:
        self.step_log.freed(request.request_id, request.is_finished())
        super()._free_request_blocks(request)  # type: ignore[misc]

    def reset_prefix_cache(self, *args: Any, **more: Any) -> bool:
        """Forget all that was computed."""
        done: bool = super().reset_prefix_cache(*args, **more)  # type: ignore[misc]
        if done:
            self.step_log.write(reset=True)
        return done

    def shutdown(self) -> None:
        """End, and close the log."""
        super().shutdown()  # type: ignore[misc]
        self.step_log.file.close()


class LoggedScheduler(Logging, Scheduler):  # type: ignore[misc]
    """The scheduler, which writes a log."""


class LoggedAsyncScheduler(Logging, AsyncScheduler):  # type: ignore[misc]
    """The scheduler for asynchronous steps, which writes a log."""
