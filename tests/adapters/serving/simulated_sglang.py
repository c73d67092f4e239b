"""Random lives of SGLang's scheduler with a worker that computes nothing, and chooses tokens.

Its queue, policy, prefix tree, allocators and what it does with results are SGLang's own; what tells others about
it does nothing. Prompts share prefixes around the ends of pages, with salts, keys, adapters and priorities.
Requests are stopped and aborted, and pages are few. A life is written to a log of steps."""

from __future__ import annotations

import os
import random
from array import array
from collections import deque
from pathlib import Path
from typing import Any

import torch
from sglang.srt.disaggregation.utils import DisaggregationMode
from sglang.srt.managers.io_struct import AbortReq
from sglang.srt.managers.schedule_batch import Req, ScheduleBatch
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor
from sglang.srt.managers.utils import GenerationBatchResult
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.mem_cache.unified_cache.components import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.runtime_context import get_context, get_parallel
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from adapters.serving import lives
from adapters.serving.lives import IDS, LONGEST, MOST_NEW, Prompts, next_token
from kvadapters.serving import sglang_steps
from kvadapters.serving.step_log import VARIABLE

SHAPES = ("full", "full,window 6", "full,window 3", "full,window 9", "full,window 2")
ADAPTERS = ("a" * 32, "b" * 32)
"""SGLang names adapters by 32 digits."""


class Nothing:
    """Stands for what tells others about a scheduler: whatever it is asked for, it does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return Nothing()

    def __bool__(self) -> bool:
        return False


class Untouched(Nothing):
    """Stands for what may change a batch before it runs, and does not."""

    num_generated_tokens = forward_ct_decode = 0

    def maybe_prepare_mlp_sync_batch(self, batch: Any, **_: Any) -> Any:
        """Give the batch."""
        return batch

    maybe_convert_decode_to_extend = prepare_for_forward = maybe_prepare_mlp_sync_batch

    def pending_member_rows(self, _: Any) -> int:
        """Give 0: there are no beams."""
        return 0

    def commit_decode(self, _: Any) -> set[int]:
        """Give none: there are no beams."""
        return set()


class Simulated(Scheduler):  # type: ignore[misc]
    """SGLang's scheduler, without processes, devices and a model."""

    def __init__(self, draw: random.Random, shape: str, page: int, behind: int, core: str) -> None:
        self._plain(behind)
        self.page_size, self.max_running_requests = page, draw.choice([3, 8])
        self.max_prefill_tokens, self.chunked_prefill_size = 256, draw.choice([None, 8, 24])
        self.is_mixed_chunk = self.chunked_prefill_size is not None and draw.random() < 0.5
        policy, self.enable_priority_scheduling = draw.choice(["fcfs", "lpm"]), draw.random() < 0.5
        in_turn = self.enable_priority_scheduling and policy == "lpm"  # SGLang does not start with both
        self.schedule_policy = "lof" if in_turn else policy
        get_context().override(
            "life",
            page_size=page,
            pp_max_micro_batch_size=self.max_running_requests,
            chunked_prefill_size=self.chunked_prefill_size or -1,
        )
        os.environ["SGLANG_SWA_EVICTION_INTERVAL"] = draw.choice(["1", "1", "4", "128"])
        self._memory(shape, draw.choice([1, 1.2, 2, 4]), core)
        self.init_schedule_policy()
        self._results()

    def _plain(self, behind: int) -> None:
        """Set what a scheduler has: no drafts, beams, forms of parallelism, grammars or stores of others."""
        for name in ("enable_hierarchical_cache", "enable_lmcache", "enable_hicache_storage", "enable_hisparse"):
            setattr(self, name, False)
        for name in ("enable_unified_cache_external_linker", "enable_lora", "require_mlp_sync", "enable_fpm"):
            setattr(self, name, False)
        for name in ("hisparse_coordinator", "dllm_config", "min_free_slots_delayer", "dynamic_chunk_sizer"):
            setattr(self, name, None)
        for name in ("truncation_align_size", "decode_offload_manager", "draft_worker", "max_queued_requests"):
            setattr(self, name, None)
        for name in ("mm_receiver", "scheduler_stage_metrics", "rust_server", "last_batch", "chunked_req"):
            setattr(self, name, None)
        for name in ("metrics_collector", "output_streamer", "load_inquirer", "load_publisher", "tp_worker"):
            setattr(self, name, Nothing())
        for name in ("ipc_channels", "pool_stats_observer", "session_controller"):
            setattr(self, name, Nothing())
        for name in ("metrics_reporter", "dp_attn_adapter", "ngram_embedding_manager", "beam_coordinator"):
            setattr(self, name, Untouched())
        self.grammar_manager = Untouched()
        self.device, self.is_generation, self.is_hybrid_ssm = "cpu", True, False
        self.spec_algorithm, self.disaggregation_mode = SpeculativeAlgorithm.NONE, DisaggregationMode.NULL
        self.enable_overlap = self.enable_skip_finishing_decode = bool(behind)
        self.enable_overlap_mlx = self._engine_paused = self.enable_continuous_input_polling = False
        self.cur_batch_for_debug, self.enable_pdmux = None, False
        self.abort_on_priority_when_disabled = False
        self.schedule_low_priority_values_first, self.priority_scheduling_preemption_threshold = False, 0
        self.prefill_decode_interval = self._prefill_decode_interval_remaining = 0
        self.prefill_decode_interval_min_bs = self.forward_ct = self.processed_tokens_counter = 0
        self.model_config, self._pending_chunked_abort_req = Nothing(), None
        self.model_config.vocab_size = IDS
        self.waiting_queue: list[Any] = []
        self.running_batch = ScheduleBatch(reqs=[], batch_is_full=False)
        self.result_queue, self.return_health_check_ipcs = deque[Any](), deque[Any]()

    def _memory(self, shape: str, room: float, core: str) -> None:
        """Make pools with few pages, and the tree that shares them, which is in Rust or in Python."""
        _, _, window = shape.partition("window ")
        page, rows = self.page_size, LONGEST + MOST_NEW + 4
        size = int(room * -(-rows // page) + 2) * page
        self.is_hybrid_swa, self.sliding_window_size = bool(window), int(window) - 1 if window else None
        pool = ReqToTokenPool(self.max_running_requests, 256, "cpu", enable_memory_saver=False)
        given = {"page_size": page, "dtype": torch.float32, "head_num": 1, "head_dim": 2, "device": "cpu"}
        parts = [ComponentType.FULL]
        if window:
            few = int(max(1, room / 2) * -(-rows // page) + 2) * page
            layers = {"full_attention_layer_ids": [0], "swa_attention_layer_ids": [1]}
            rows_of = SWAKVPool(size=size, size_swa=few, **given, **layers, enable_memory_saver=False)
            slots = SWATokenToKVPoolAllocator(size, few, page, torch.float32, "cpu", rows_of, False)
            parts.append(ComponentType.SWA)
        else:
            rows_of = MHATokenToKVPool(size=size, **given, layer_num=1, enable_memory_saver=False)
            kind = (TokenToKVPoolAllocator, size) if page == 1 else (PagedTokenToKVPoolAllocator, size, page)
            slots = kind[0](*kind[1:], torch.float32, "cpu", rows_of, False)
        self.req_to_token_pool, self.token_to_kv_pool_allocator = pool, slots
        self.tree_cache = UnifiedRadixCache(
            CacheInitParams(
                disable=False,
                req_to_token_pool=pool,
                token_to_kv_pool_allocator=slots,
                page_size=page,
                tree_components=tuple(parts),
                sliding_window_size=self.sliding_window_size,
                chunked_prefill_size=self.chunked_prefill_size,
                tree_core_backend=core,
            )
        )

    def _results(self) -> None:
        """Make what takes the results of steps: SGLang's own."""
        names = ("is_generation", "disaggregation_mode", "enable_overlap", "enable_overlap_mlx", "model_config")
        names += ("token_to_kv_pool_allocator", "tree_cache", "hisparse_coordinator", "req_to_token_pool")
        names += ("decode_offload_manager", "metrics_collector", "metrics_reporter", "draft_worker")
        names += ("output_streamer", "beam_coordinator", "abort_request")
        self.batch_result_processor = SchedulerBatchResultProcessor(
            **{name: getattr(self, name) for name in names},
            model_worker=None,
            logprob_result_processor=Nothing(),
        )

    def publish_load_snapshot(self, force: bool = False) -> None:
        """Tell nobody."""

    def _record_step_counters(self, *_: Any) -> None:
        """Count nothing."""

    def is_fully_idle(self, for_health_check: bool = False, ignore_waiting: bool = False) -> bool:
        """Tell whether there is nothing to do."""
        return not (self.waiting_queue or self.running_batch.reqs or self.last_batch or self.chunked_req)

    def run_batch(self, batch: Any) -> GenerationBatchResult:
        """Compute a step: choose a token for each request."""
        self.forward_ct += 1
        batch.forward_iter = self.forward_ct
        sglang_steps.runs(self, batch)
        tokens = [self.texts.computed(each, int(n)) for each, n in zip(batch.reqs, batch.seq_lens_cpu, strict=True)]
        return GenerationBatchResult(
            logits_output=None, next_token_ids=torch.tensor(tokens), can_run_cuda_graph=False
        )


class Texts:
    """The worker's own texts: the scheduler may be a step behind."""

    def __init__(self) -> None:
        self.of: dict[str, list[int]] = {}

    def computed(self, request: Any, rows: int) -> int:
        """Compute so many rows of a request: give the token behind the last one."""
        text = self.of.get(request.rid, [])
        known = [*request.origin_input_ids, *request.output_ids]
        if len(known) > len(text) or text[: len(known)] != known or rows < len(known):
            text = known
        chosen = next_token(text[:rows])
        self.of[request.rid] = text[:rows] + ([chosen] if rows == len(text) else text[rows:])
        return chosen


class Life(lives.Life):
    """A scheduler from its start on. `behind` steps are decided before the tokens of one are taken."""

    def __init__(self, seed: int, log: Path, shape: str | None = None, **fixed: Any) -> None:
        self.draw = draw = random.Random(seed)
        self.shape = shape or draw.choice(SHAPES)
        self.behind = fixed.get("behind", draw.choice([0, 1]))
        page = fixed.get("page", draw.choice([1, 2, 4]))
        os.environ[VARIABLE] = str(log)
        core = fixed.get("core", draw.choice(["rust", "python"]))
        self.scheduler = Simulated(draw, self.shape, page, self.behind, core)
        self.scheduler.texts = Texts()
        sglang_steps.attach(self.scheduler)
        self.prompts, self.asked = Prompts(draw, page), 0

    notices = (*lives.Life.notices, LookupError)

    def is_done(self) -> bool:
        """Tell whether all requests have their answers."""
        return self.scheduler.is_fully_idle() and not self.scheduler.result_queue

    def happen(self) -> None:
        """Add a request now and then; abort one, or forget what was computed, less often."""
        scheduler = self.scheduler
        if len(scheduler.step_log.alive) < 12 and self.draw.random() < 0.5:
            self.ask()
        if scheduler.step_log.alive and self.draw.random() < 0.04:
            scheduler.abort_request(AbortReq(rid=self.draw.choice(sorted(scheduler.step_log.alive))))
        if self.draw.random() < 0.02:
            self.idle()
            scheduler.flush_cache()

    def idle(self) -> None:
        """Let all requests end: SGLang forgets nothing before."""
        for _ in range(1000):
            if self.is_done():
                return
            self.step()
        raise AssertionError("the scheduler is stuck")

    def ask(self) -> None:
        """Add a request."""
        draw = self.draw
        how = SamplingParams(max_new_tokens=draw.randint(1, MOST_NEW), stop_token_ids=[draw.randrange(IDS)])
        how.normalize(None)
        more = {
            "priority": draw.randrange(3),
            "cache_salt": draw.choice(["", "", "", "a", "b"]) or None,
            "extra_key": draw.choice([None, None, None, "k"]),
            "lora_id": draw.choice([None, None, None, *ADAPTERS]),
        }
        tokens = array("q", self.prompts.drawn())
        self.scheduler._add_request_to_queue(Req(f"r{self.asked:04}", "", tokens, how, vocab_size=IDS, **more))
        self.asked += 1

    def step(self) -> None:
        """Decide a step, and take the tokens of one that was computed."""
        scheduler = self.scheduler
        plan = scheduler.get_next_batch_to_run(
            running_batch=scheduler.running_batch, last_batch=scheduler.last_batch
        )
        scheduler.running_batch, batch = plan.running_batch, plan.batch_to_run
        if batch:
            scheduler.result_queue.append((batch.copy() if self.behind else batch, scheduler.run_batch(batch)))
        while scheduler.result_queue and (len(scheduler.result_queue) > self.behind or not batch):
            done, result = scheduler.result_queue.popleft()
            scheduler.process_batch_result(done, result)
            for each in done.reqs:
                self.prompts.seen([*each.origin_input_ids, *each.output_ids])
        scheduler.last_batch = batch


get_context().override_server_args(
    device="cpu",
    attention_backend="torch_native",
    prefill_attention_backend="torch_native",
    decode_attention_backend="torch_native",
    sampling_backend="pytorch",
    skip_tokenizer_init=True,
).install()
get_parallel().override_permanently(dp_rank=None)
os.environ.setdefault(VARIABLE, os.devnull)
sglang_steps.register()
HookRegistry.apply_hooks()
