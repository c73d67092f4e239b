"""vLLM in this process: its engine, stepped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.serving.driver import CAN, Answer, Declared, Driver, EngineFailed, Request, Sample, Wanted
from kvspec.errors import BadInput, Refused

SET = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCH_COMPILE_DISABLE": "1",  # one small function of its sampler would be compiled for seconds
    "NUMBA_NUM_THREADS": "1",  # threads that look drafts up take five times as long where cores are shared
}
for _name, _value in SET.items():  # they are read when it is imported
    os.environ.setdefault(_name, _value)

import torch  # noqa: E402
import vllm  # noqa: E402
from vllm import EngineArgs, LLMEngine, SamplingParams  # noqa: E402
from vllm.config import KVEventsConfig  # noqa: E402
from vllm.exceptions import VLLMClientError  # noqa: E402
from vllm.lora.request import LoRARequest  # noqa: E402
from vllm.sampling_params import RequestOutputKind  # noqa: E402

from kvadapters.serving.step_log import VARIABLE  # noqa: E402
from kvadapters.serving.vllm_counts import Counts, Evictions  # noqa: E402
from kvadapters.serving.vllm_steps import LoggedScheduler  # noqa: E402

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
ASKED: dict[str, Any] = {"logprobs": -1, "flat_logprobs": True, "detokenize": False, "ignore_eos": True}
IDLE = 10_000
"""Steps without an answer after which the engine is taken for stuck."""


def driver(wanted: Wanted) -> Driver:
    """Start vLLM with a probe. Raises BadInput for a dtype or a form of rows that it does not have."""
    return VLLM(wanted.folder, _flags(wanted))


def spare(wanted: Wanted) -> Driver:
    """The same, with one more place for adapters than there are: on a CPU, what has none gets the last one's."""
    flags = _flags(wanted)
    return VLLM(wanted.folder, {**flags, "max_loras": flags.get("max_loras", 0) + 1, "enable_lora": True})


def vectors(wanted: Wanted) -> Driver:
    """The same as `driver`, with prompts of which a part, or all, is handed in as vectors."""
    return VLLM(wanted.folder, {**_flags(wanted), "enable_prompt_embeds": True})


def _flags(wanted: Wanted) -> dict[str, Any]:
    """Give vLLM's arguments. Raises BadInput."""
    if wanted.dtype not in DTYPES or wanted.rows not in (None, *ROWS):
        raise BadInput(f"vLLM computes in {', '.join(DTYPES)}, and has rows of {' or '.join(ROWS)}")
    flags: dict[str, Any] = {**USUAL, "dtype": DTYPES[wanted.dtype]}
    flags |= {FLAGS[name]: size for name, size in wanted.sizes().items() if size and name in FLAGS}
    flags |= {"kv_cache_dtype": wanted.rows} if wanted.rows else {}
    if drafts := wanted.drafts:
        ngrams = {"prompt_lookup_min": 1, "prompt_lookup_max": 3}
        flags["speculative_config"] = {"method": "ngram", "num_speculative_tokens": drafts, **ngrams}
    adapters = _adapters(wanted.folder)
    return flags | ({"enable_lora": True, "max_loras": len(adapters)} if adapters else {})


class VLLM(Driver):
    """The engine, with prefix caching and chunked prefill, as it is by default."""

    def __init__(self, folder: str, flags: Mapping[str, Any]) -> None:
        self.folder, self.flags, self.counted, self.asked = folder, flags, Counter[str](), 0
        self.adapters = _adapters(folder)
        self.embedding = _embedding(folder) if flags.get("enable_prompt_embeds") else None
        self._start()
        self.declared = self._declared(flags)

    def _start(self) -> None:
        self.outputs = dict[str, Any]()
        events = KVEventsConfig(enable_kv_cache_events=True, publisher="null")
        more = {"scheduler_cls": LoggedScheduler} if VARIABLE in os.environ else {}
        arguments = EngineArgs(model=self.folder, kv_events_config=events, **FIXED, **self.flags, **more)
        self.engine = LLMEngine.from_engine_args(arguments, stat_loggers=[lambda *_: Counts(self.counted)])
        self.engine.engine_core.engine_core.scheduler.kv_event_publisher = Evictions(self.counted)

    def _declared(self, flags: Mapping[str, Any]) -> Declared:
        """Say which sizes the engine has, by its own configuration."""
        config = self.engine.vllm_config
        parts = (config.cache_config, config.scheduler_config, config.model_config)
        had = {ours: next(getattr(p, flag) for p in parts if hasattr(p, flag)) for ours, flag in FLAGS.items()}
        had |= {"blocks": config.cache_config.num_gpu_blocks}
        had |= {"drafts": config.speculative_config.num_speculative_tokens if config.speculative_config else 0}
        said = " ".join(f"{name}={value}" for name, value in {**flags, "enforce_eager": True}.items())
        can = CAN.keys() - {"ranks"} - (set() if self.adapters else {"adapters"})
        can -= {"vectors"} if self.embedding is None else set()
        can -= {"samples"} if had["drafts"] else set()  # it takes no bias beside drafts
        return Declared("vllm", version=vllm.__version__, flags=said, can=frozenset(can), **had)

    def submit(self, request: Request) -> Any:
        """Add a request. What the engine says of a wrong request is its refusal."""
        asking = SamplingParams(
            max_tokens=request.new,
            n=request.samples,
            temperature=float(request.samples > 1),  # several of the likeliest answer are refused
            logit_bias=dict(request.bias) or None,
            stop_token_ids=None if request.stop is None else [request.stop],
            output_kind=RequestOutputKind.FINAL_ONLY,
            **ASKED,
        )
        salt = {"cache_salt": request.salt} if request.salt else {}
        name = str(self.asked)
        self.asked += 1
        try:
            prompt = {**self._prompt(request), **salt}
            self.engine.add_request(name, prompt, asking, lora_request=self.adapters.get(request.adapter))
        except (ValueError, VLLMClientError) as e:
            raise Refused("", str(e)) from None
        return name

    def _prompt(self, request: Request) -> dict[str, Any]:
        """Give a prompt of ids, of vectors, or of both."""
        if self.embedding is None or not request.places:
            return {"prompt_token_ids": list(request.tokens)}
        given = torch.zeros(len(request.tokens), self.embedding.shape[1])
        given[list(request.places)] = self.embedding[[request.tokens[at] for at in request.places]]
        vectors = {"prompt_embeds": given.to(self.engine.vllm_config.model_config.dtype)}
        if len(request.places) == len(request.tokens):
            return vectors
        kept = [at not in request.places for at in range(len(request.tokens))]
        return {**vectors, "prompt_token_ids": request.ids, "prompt_is_token_ids": kept}

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
        """Forget all rows; start the engine again if it holds blocks that no request has. Memory keeps what it
        holds, as no row is read there before it is written again."""
        if not self.engine.reset_prefix_cache():
            self.close()
            self._start()

    def close(self) -> None:
        """Let the engine go."""
        self.engine.engine_core.shutdown()


def _embedding(folder: str) -> torch.Tensor:
    """Give what a probe embeds its ids as, [vocabulary, hidden]."""
    network = Probe.load(folder).network
    return torch.from_numpy(np.asarray(network.embedding * network.embedding_factor, np.float32))


def _adapters(folder: str) -> dict[str, LoRARequest]:
    """Give the adapters of a probe by name, if it has any."""
    found = sorted(path.parent for path in Path(folder).glob("adapters/*/adapter_config.json"))
    return {path.name: LoRARequest(path.name, number, str(path)) for number, path in enumerate(found, 1)}


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
