"""Random lives of vLLM's scheduler with a worker that computes nothing: it chooses tokens, and right and wrong
drafts.

Prompts share prefixes around the ends of blocks, with salts and adapters, priorities, stops, aborts and resets,
while blocks are few. A life is written to a log of steps."""

from __future__ import annotations

import os
import random
import tempfile
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

import torch
from vllm import EngineArgs, SamplingParams
from vllm.config import KVTransferConfig
from vllm.lora.request import LoRARequest
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    KVCacheTensor,
    MambaSpec,
    SlidingWindowSpec,
)
from vllm.v1.outputs import DraftTokenIds, KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.simple_kv_offload.metadata import SimpleCPUOffloadWorkerMetadata
from vllm.v1.structured_output import StructuredOutputManager

from adapters.serving import lives
from adapters.serving.lives import IDS, LONGEST, MOST_NEW, Prompts, next_token
from kvadapters.probe import Probe
from kvadapters.serving.step_log import VARIABLE
from kvadapters.serving.vllm_steps import LoggedAsyncScheduler, LoggedScheduler

SHAPES = (
    "full",
    "full,window 6",
    "full,window 3,window 9",
    "window 6",
    "full,chunk 8",
    "full,state",
    "full,window 1",
)

NOT_KEPT = ("window 6", "full,chunk 8")
"""Shapes without rows on the host: vLLM asks for a full group, and loads a chunk's rows wrongly."""
RESTLESS = 100
"""Steps without a request, behind which a life ends: where the host has few places, a lazy connector keeps the same
pages again and again, since each takes the place of another."""


@cache
def configuration() -> Any:
    """Make vLLM's configuration once; a life changes what it needs."""
    folder = Path(tempfile.mkdtemp())
    Probe.of("gemma3", "full,window 8").write(folder)
    sizes = {"block_size": 32, "max_num_batched_tokens": 64, "max_num_seqs": 8, "max_model_len": 256}
    register_all_kvcache_specs(None)
    return EngineArgs(
        model=str(folder),
        skip_tokenizer_init=True,
        enforce_eager=True,
        dtype="float32",
        async_scheduling=False,
        **sizes,
    ).create_engine_config()


def layout(view: str, block: int) -> Any:
    """Give the layout of a group."""
    kind, _, size = view.partition(" ")
    sizes = {"block_size": block, "num_kv_heads": 1, "head_size": 4, "dtype": torch.float32}
    if kind == "window":
        return SlidingWindowSpec(sliding_window=int(size), **sizes)
    if kind == "chunk":
        return ChunkedLocalAttentionSpec(attention_chunk_size=int(size), **sizes)
    if kind == "state":
        return MambaSpec(block_size=block, shapes=((2,),), dtypes=(torch.float32,), mamba_cache_mode="align")
    return FullAttentionSpec(**sizes)


class Transfers:
    """Moves pages to the host and back, each way in its order, and says some steps later that it is done."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.stores, self.loads = deque[int](), deque[int]()

    def moved(self, begun: Any) -> KVConnectorOutput | None:
        """Begin what a step moves, and tell what is done: all that was on its way if a request was preempted."""
        if begun is None:
            return None
        least = (len(self.stores), len(self.loads)) if begun.need_flush else (0, 0)
        self.stores.extend([begun.store_event] if begun.store_event >= 0 else [])
        self.loads.extend([begun.load_event] if begun.load_event >= 0 else [])
        stores, loads = (self.done(*each) for each in zip((self.stores, self.loads), least, strict=True))
        requests = {name for event in loads for name in begun.load_event_to_reqs.get(event, ())}
        told = SimpleCPUOffloadWorkerMetadata(dict.fromkeys(stores, 1)) if stores else None
        return KVConnectorOutput(finished_recving=requests or None, kv_connector_worker_meta=told)

    def done(self, begun: deque[int], least: int) -> list[int]:
        """Draw how many are done, of those that began first."""
        return [begun.popleft() for _ in range(self.draw.randint(least, len(begun)))]


class Worker:
    """Chooses the next token of a text by its last ones, so that equal texts go on equally. It knows its own texts:
    the scheduler may be a step behind."""

    def __init__(self, draw: random.Random, drafts: int, transfers: Transfers) -> None:
        self.draw, self.most, self.transfers = draw, drafts, transfers
        self.texts: dict[str, list[int]] = {}
        self.at: dict[str, int] = {}
        self.drafts: dict[str, list[int]] = {}

    def compute(self, scheduler: Any, output: Any) -> ModelRunnerOutput:
        """Compute a step."""
        begun = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        cached = output.scheduled_cached_reqs
        begun |= {
            name: at
            for name, at in zip(cached.req_ids, cached.num_computed_tokens, strict=True)
            if name in cached.resumed_req_ids
        }
        for name, at in begun.items():
            self.texts[name], self.at[name] = list(scheduler.requests[name].all_token_ids), at
        names = list(output.num_scheduled_tokens)
        sampled = [self.computed(name, output) for name in names]
        index = {name: number for number, name in enumerate(names)}
        moved = self.transfers.moved(output.kv_connector_metadata)
        return ModelRunnerOutput(names, index, sampled, kv_connector_output=moved)

    def computed(self, name: str, output: Any) -> list[int]:
        """Compute a step of one request: give its new tokens."""
        text, given = self.texts[name], output.scheduled_spec_decode_tokens.get(name, [])
        drafts = self.drafts.pop(name, [])[: len(given)] if -1 in given else given
        self.at[name] += output.num_scheduled_tokens[name] - len(given)
        if self.at[name] < len(text):
            return []
        before = len(text)
        for draft in [*drafts, None]:
            text.append(next_token(text))
            if text[-1] != draft:
                break
        self.at[name] = len(text) - 1
        self.drafts[name] = self.guessed(text)
        return text[before:]

    def guessed(self, text: list[int]) -> list[int]:
        """Guess what follows a text, rightly as a rule."""
        text, guesses = list(text), list[int]()
        for _ in range(self.most):
            text.append(next_token(text) if self.draw.random() < 0.7 else self.draw.randrange(IDS))
            guesses.append(text[-1])
        return guesses


class Life(lives.Life):
    """A scheduler from its start on. `behind` steps are decided before the tokens of one are taken. Where the shape
    is given, no pages are kept on the host unless `offloads` asks for it."""

    def __init__(self, seed: int, log: Path, shape: str | None = None, **fixed: Any) -> None:
        self.draw = draw = random.Random(seed)
        self.shape = shape or draw.choice(SHAPES)
        self.block, self.behind = draw.choice([2, 4]), fixed.get("behind", draw.choice([0, 0, 1]))
        self.drafts = fixed.get("drafts", 0 if "state" in self.shape else draw.choice([0, 0, 3]))
        self.host_draw = random.Random(f"host {seed}")
        kept = not shape and self.shape not in NOT_KEPT and self.host_draw.random() < 0.5
        self.offloads = fixed.get("offloads", kept)
        self.worker, self.asked, self.rest = Worker(draw, self.drafts, Transfers(self.host_draw)), 0, 0
        self.prompts = Prompts(draw, self.block)
        self.computing = deque[tuple[Any, ModelRunnerOutput]]()
        os.environ[VARIABLE] = str(log)
        self.scheduler = self.started()
        hashed = get_hash_fn_by_name("sha256")
        init_none_hash(hashed)
        self.hasher = get_request_block_hasher(self.block, hashed)

    def started(self) -> Any:
        """Start a scheduler with few blocks."""
        views, config, draw = self.shape.split(","), configuration(), self.draw
        alone = len(views) * ((LONGEST + MOST_NEW + 8) // self.block + 3)
        blocks = int(alone * draw.choice([1, 1.2, 2, 4]))
        config.cache_config.num_gpu_blocks, config.cache_config.block_size = blocks, self.block
        config.cache_config.mamba_cache_mode = "align" if "state" in self.shape else "none"
        config.scheduler_config.max_num_seqs = draw.choice([3, 8])
        config.scheduler_config.max_num_batched_tokens = draw.choice([8, 24, 64])
        config.scheduler_config.max_num_scheduled_tokens = None
        config.scheduler_config.policy = draw.choice(["fcfs", "priority"])
        groups = [KVCacheGroupSpec([f"layer {n}"], layout(view, self.block)) for n, view in enumerate(views)]
        config.kv_transfer_config = self.host(blocks) if self.offloads else None
        tensors = [KVCacheTensor(blocks, [f"layer {n}"], 1, 1) for n, _ in enumerate(views)]  # a byte each block
        scheduler = (LoggedAsyncScheduler if self.behind else LoggedScheduler)(
            vllm_config=config,
            kv_cache_config=KVCacheConfig(num_blocks=blocks, kv_cache_tensors=tensors, kv_cache_groups=groups),
            structured_output_manager=StructuredOutputManager(config),
            block_size=self.block,
            hash_block_size=self.block,
        )
        scheduler.num_spec_tokens = self.drafts
        return scheduler

    def host(self, blocks: int) -> KVTransferConfig:
        """Let pages be kept on the host, where there are fewer or more of them."""
        size = int(blocks * self.host_draw.choice([0.3, 1, 3]))
        how = {"cpu_bytes_to_use": size, "lazy_offload": self.host_draw.random() < 0.4}
        return KVTransferConfig(
            kv_connector="SimpleCPUOffloadConnector", kv_role="kv_both", kv_connector_extra_config=how
        )

    def is_done(self) -> bool:
        """Tell whether all requests have their answers, and nothing is on its way to the host, or never comes to
        rest."""
        alive = self.scheduler.has_unfinished_requests()
        busy = alive or any(output.num_scheduled_tokens for output, _ in self.computing)
        self.rest = 0 if busy else self.rest + 1
        return not alive and (not (self.scheduler.has_requests() or self.computing) or self.rest > RESTLESS)

    def happen(self) -> None:
        """Add a request now and then; abort one, or reset the cache, less often."""
        names = list(self.scheduler.requests)
        if len(names) < 12 and self.draw.random() < 0.5:
            self.ask()
        if names and self.draw.random() < 0.04:
            self.scheduler.finish_requests(self.draw.choice(names), RequestStatus.FINISHED_ABORTED)
        if self.draw.random() < 0.02:
            self.forget()

    def forget(self) -> None:
        """Reset the cache: with requests that run, or, where pages are kept on the host, when all have ended."""
        for _ in range(1000 if self.offloads else 0):
            if self.is_done():
                break
            self.step()
        running = not self.behind and not self.offloads
        self.scheduler.reset_prefix_cache(reset_running_requests=running, reset_connector=True)

    def ask(self) -> None:
        """Add a request."""
        draw, name = self.draw, f"r{self.asked}"
        self.asked += 1
        tokens = self.prompts.drawn()
        more: dict[str, Any] = {
            "priority": draw.randrange(3),
            "cache_salt": draw.choice(["", "", "", "a", "b"]) or None,
        }
        if draw.random() < 0.2:
            more["lora_request"] = LoRARequest(draw.choice(["a", "x"]), draw.choice([1, 2]), "/nowhere")
        asked = SamplingParams(
            max_tokens=draw.randint(1, MOST_NEW), ignore_eos=True, stop_token_ids=[draw.randrange(IDS)]
        )
        self.scheduler.add_request(Request(name, tokens, asked, None, block_hasher=self.hasher, **more))

    def step(self) -> None:
        """Decide a step, and take the tokens of one that was computed."""
        output = self.scheduler.schedule()
        computed = self.worker.compute(self.scheduler, output)
        self.computing.append((output, computed))
        if len(self.computing) > self.behind or not output.num_scheduled_tokens:
            while self.computing and (len(self.computing) > self.behind or not self.scheduler.has_requests()):
                self.take(*self.computing.popleft())

    def take(self, output: Any, computed: ModelRunnerOutput) -> None:
        """Give the scheduler what was computed."""
        self.scheduler.update_from_output(output, computed)
        if self.drafts and not self.behind:
            names = [name for name in computed.req_ids if name in self.worker.drafts]
            self.scheduler.update_draft_token_ids(
                DraftTokenIds(names, [self.worker.drafts[name] for name in names])
            )
        for name in computed.req_ids:
            request = self.scheduler.requests.get(name)
            if request is not None:
                self.prompts.seen(list(request.all_token_ids))
