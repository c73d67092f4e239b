"""vLLM in this process: its engine, stepped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from kvadapters.serving.driver import CAN, Answer, Declared, Driver, EngineFailed, Request, Sample, Wanted
from kvspec.errors import BadInput, Refused

QUIET = {"ENABLE_V1_MULTIPROCESSING": "0", "LOGGING_LEVEL": "ERROR", "NO_USAGE_STATS": "1"}
SMALL = {"CPU_KVCACHE_SPACE": "1", "CPU_OMP_THREADS_BIND": "nobind"}
for _name, _value in (QUIET | SMALL).items():  # vLLM reads them when it is imported
    os.environ.setdefault(f"VLLM_{_name}", _value)

import vllm  # noqa: E402
from vllm import EngineArgs, LLMEngine, SamplingParams  # noqa: E402
from vllm.config import KVEventsConfig  # noqa: E402
from vllm.distributed.kv_events import BlockRemoved, NullEventPublisher  # noqa: E402
from vllm.sampling_params import RequestOutputKind  # noqa: E402
from vllm.v1.metrics.loggers import StatLoggerBase  # noqa: E402

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
ROWS = ("fp8_e4m3", "fp8_e5m2")
FLAGS = {
    "block": "block_size",
    "blocks": "num_gpu_blocks_override",
    "chunk": "max_num_batched_tokens",
    "sequences": "max_num_seqs",
    "longest": "max_model_len",
}
"""Sizes, and what vLLM calls them."""
USUAL = {"block_size": 32, "max_num_batched_tokens": 256, "max_num_seqs": 8, "max_model_len": 512}
"""What is taken where nothing else is wanted: a CPU has no smaller blocks, and a probe no longer texts."""
FIXED = {"max_logprobs": -1, "skip_tokenizer_init": True, "enforce_eager": True, "disable_log_stats": False}
IDLE = 10_000
"""Steps without an answer after which the engine is taken for stuck."""


def driver(wanted: Wanted) -> Driver:
    """Start vLLM with a probe. Raises BadInput for a dtype or a form of rows that it does not have."""
    if wanted.dtype not in DTYPES or wanted.rows not in (None, *ROWS):
        raise BadInput(f"vLLM computes in {', '.join(DTYPES)}, and has rows of {' or '.join(ROWS)}")
    flags: dict[str, Any] = {**USUAL, "dtype": DTYPES[wanted.dtype]}
    flags |= {FLAGS[name]: size for name, size in wanted.sizes().items() if size and name in FLAGS}
    flags |= {"kv_cache_dtype": wanted.rows} if wanted.rows else {}
    if drafts := wanted.drafts:
        ngrams = {"prompt_lookup_min": 1, "prompt_lookup_max": 3}
        flags["speculative_config"] = {"method": "ngram", "num_speculative_tokens": drafts, **ngrams}
    return VLLM(wanted.folder, flags)


class VLLM(Driver):
    """The engine, with prefix caching and chunked prefill, as it is by default."""

    def __init__(self, folder: str, flags: Mapping[str, Any]) -> None:
        self.counted, self.asked, self.outputs = Counter[str](), 0, dict[str, Any]()
        events = KVEventsConfig(enable_kv_cache_events=True, publisher="null")
        arguments = EngineArgs(model=folder, kv_events_config=events, **FIXED, **flags)
        self.engine = LLMEngine.from_engine_args(arguments, stat_loggers=[lambda *_: _Counts(self.counted)])
        scheduler = self.engine.engine_core.engine_core.scheduler
        scheduler.kv_event_publisher = _Evictions(self.counted)
        self.declared = self._declared(flags)

    def _declared(self, flags: Mapping[str, Any]) -> Declared:
        """Say which sizes the engine has, by its own configuration."""
        config = self.engine.vllm_config
        parts = (config.cache_config, config.scheduler_config, config.model_config)
        had = {ours: next(getattr(p, flag) for p in parts if hasattr(p, flag)) for ours, flag in FLAGS.items()}
        had |= {"blocks": config.cache_config.num_gpu_blocks}
        had |= {"drafts": config.speculative_config.num_speculative_tokens if config.speculative_config else 0}
        said = " ".join(f"{name}={value}" for name, value in {**flags, "enforce_eager": True}.items())
        return Declared("vllm", version=vllm.__version__, flags=said, can=frozenset(CAN), **had)

    def submit(self, request: Request) -> Any:
        """Add a request; what the engine raises as ValueError is its refusal."""
        asking = SamplingParams(
            max_tokens=request.new,
            n=request.samples,
            temperature=float(request.samples > 1),  # several of the likeliest answer are refused
            logit_bias=dict(request.bias) or None,
            **{"logprobs": -1, "flat_logprobs": True, "detokenize": False, "ignore_eos": True},
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        salt = {"cache_salt": request.salt} if request.salt else {}
        name = str(self.asked)
        self.asked += 1
        try:
            self.engine.add_request(name, {"prompt_token_ids": list(request.tokens), **salt}, asking)
        except ValueError as e:
            raise Refused("", str(e)) from None
        return name

    def wait(self, handle: Any) -> Answer:
        """Step until all samples are there."""
        for _ in range(IDLE):
            if handle in self.outputs:
                return _answer(self.outputs.pop(handle))
            self.step(1)
        raise EngineFailed(f"no answer after {IDLE} steps")

    def step(self, count: int) -> None:
        """Step the engine."""
        for _ in range(count):
            try:
                outputs = self.engine.step()
            except Exception as e:  # whatever it raises, the engine fails here
                raise EngineFailed(f"{type(e).__name__}: {e}") from e
            self.outputs |= {output.request_id: output for output in outputs if output.finished}

    def cancel(self, handle: Any) -> None:
        """Abort a request, unless it has ended."""
        if self.outputs.pop(handle, None) is None:
            self.engine.abort_request([handle])

    def counts(self) -> Mapping[str, int]:
        """Give what the engine counts."""
        return dict(self.counted)

    def reset(self) -> None:
        """Forget all rows. Their memory keeps what it holds, as no row is read there before it is written again."""
        if not self.engine.reset_prefix_cache():
            raise EngineFailed("the prefix cache cannot be reset: some of its blocks are in use")

    def close(self) -> None:
        """Let the engine go."""
        self.engine.engine_core.shutdown()


def _answer(output: Any) -> Answer:
    """Read an output: the logprobs of each token are a run of a flat list, in the order of ranks."""
    samples = []
    for one in sorted(output.outputs, key=lambda each: each.index):
        flat = one.logprobs
        ids, values = np.array(flat.token_ids), np.array(flat.logprobs)
        rows = np.full((len(one.token_ids), ids.max() + 1), -np.inf)
        for row, start, end in zip(rows, flat.start_indices, flat.end_indices, strict=True):
            row[ids[start:end]] = values[start:end]
        samples.append(Sample(tuple(one.token_ids), rows))
    return Answer(tuple(samples), output.num_cached_tokens)


class _Counts(StatLoggerBase):  # type: ignore[misc]
    """Adds up what each step of the engine tells."""

    def __init__(self, counted: Counter[str]) -> None:
        self.counted = counted
        names = ("cached tokens", "evictions", "preemptions", "drafts accepted", "drafts rejected")
        counted.update(dict.fromkeys(names, 0))

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **more: Any) -> None:
        """Add a step."""
        if scheduler_stats:
            self.counted["cached tokens"] += scheduler_stats.prefix_cache_stats.hits
        if scheduler_stats and (drafts := scheduler_stats.spec_decoding_stats):
            self.counted["drafts accepted"] += drafts.num_accepted_tokens
            self.counted["drafts rejected"] += drafts.num_draft_tokens - drafts.num_accepted_tokens
        if iteration_stats:
            self.counted["preemptions"] += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Nothing is logged."""


class _Evictions(NullEventPublisher):  # type: ignore[misc]
    """Counts blocks whose rows are not found any more, as their place is given to others."""

    def __init__(self, counted: Counter[str]) -> None:
        super().__init__()
        self.counted = counted

    def publish(self, events: Any) -> None:
        """Count a batch of events."""
        removed = (len(event.block_hashes) for event in events.events if isinstance(event, BlockRemoved))
        self.counted["evictions"] += sum(removed)
