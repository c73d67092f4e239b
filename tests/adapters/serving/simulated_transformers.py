"""Random lives of the continuous batching of transformers with a worker that computes nothing, and chooses tokens.

The processor, scheduler, pages, ledger, forks and what is kept on the host are its own. Prompts share prefixes
around the ends of pages, some have forks, requests are stopped and cancelled, and pages are few. A life is written
to a log of steps. Steps are decided one ahead too: a worker that is done at once needs no streams and events."""

from __future__ import annotations

import os
import queue
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LogitsProcessorList
from transformers.generation.continuous_batching import continuous_api
from transformers.generation.continuous_batching.cache import PagedAttentionCache
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessorList
from transformers.generation.continuous_batching.distributed import DistributedHelper
from transformers.generation.continuous_batching.input_outputs import (
    ContinuousBatchingAsyncIOs,
    ContinuousBatchingIOs,
)
from transformers.generation.continuous_batching.requests import RequestState
from transformers.generation.continuous_batching.scheduler import SCHEDULER_MAPPING

from adapters.serving import lives
from adapters.serving.lives import IDS, LONGEST, MOST_NEW, Prompts, next_token
from kvadapters.serving import transformers_steps
from kvadapters.serving.step_log import VARIABLE

SHAPES = ("full", "full,window 6")
MOST_FORKS = 3


class Ahead(ContinuousBatchingAsyncIOs):  # type: ignore[misc]
    """The inputs and outputs of steps that are decided one ahead, on the host alone."""

    def __init__(self, **given: Any) -> None:
        self.current_pair, self.compute_stream = 0, None
        self.max_batch_tokens = given["cache"].max_batch_tokens
        over = SimpleNamespace(synchronize=lambda: None)
        hosts = [ContinuousBatchingIOs(**given) for _ in range(2)]
        self.io_pairs = [SimpleNamespace(host_io=host, device_io=host, d2h_over=over) for host in hosts]


class Worker:
    """Chooses the next token of a text. It knows its own texts: the processor may be a step behind."""

    def __init__(self) -> None:
        self.of: dict[str, list[int]] = {}

    def compute(self, processor: Any) -> None:
        """Compute the step that is prepared."""
        both = processor.inputs_and_outputs
        io = both.io_pairs[both.current_pair].host_io if processor.use_async_batching else both
        states = [each.state for each in io.requests_in_batch if each.has_new_token]
        for at, state in enumerate(states):
            io.output_ids[0, at] = self.computed(state)
        if processor.use_async_batching:
            both.swap_io_pairs()

    def computed(self, state: Any) -> int:
        """Compute what a request has in a step: give the token behind it."""
        known, mine = transformers_steps.text(state), self.of.get(state.request_id, [])
        if mine[: len(known)] != known or state.position_offset <= len(known):
            mine = known
        chosen = next_token(mine[: state.position_offset])
        self.of[state.request_id] = [*mine[: state.position_offset], chosen]
        return chosen


class Life(lives.Life):
    """A processor from its start on. `behind` steps are decided before the tokens of one are taken: then no request
    is cancelled, since that ends the processor. So does a full pool of the host. `host` is its size, in sizes of
    the device's."""

    def __init__(self, seed: int, log: Path, shape: str | None = None, **fixed: Any) -> None:
        self.draw = draw = random.Random(seed)
        self.shape, self.asked, self.begun = shape or draw.choice(SHAPES), 0, False
        self.behind, self.page = fixed.get("behind", draw.choice([0, 1])), draw.choice([2, 4])
        self.host = fixed.get("host", draw.choice([0, 0, 50]))
        self.forks = fixed.get("forks", draw.choice([0, 0, MOST_FORKS]))
        self.cancelled = fixed.get("cancelled", not self.behind)
        os.environ[VARIABLE] = str(log)
        self.requests, self.cancels = queue.Queue[Any](), queue.Queue[str]()
        self.prompts, self.worker = Prompts(draw, self.page), Worker()
        self.scheduler = self.started()
        transformers_steps.attach(self.scheduler)

    def started(self) -> Any:
        """Start a processor with few pages."""
        draw, (_, _, window) = self.draw, self.shape.partition("window ")
        kinds = ["full_attention", *(["sliding_attention"] * 2 if window else [])]
        model = LlamaConfig(
            num_hidden_layers=len(kinds), num_attention_heads=1, num_key_value_heads=1, head_dim=2, vocab_size=IDS
        )
        model.layer_types, model.sliding_window = kinds, int(window or 0)
        model._attn_implementation = "sdpa"
        blocks = int(-(-(LONGEST + MOST_NEW + 2) // self.page) * draw.choice([1.1, 1.3, 2, 4])) + 1
        how = ContinuousBatchingConfig(
            page_size=self.page,
            num_blocks=blocks,
            max_batch_tokens=draw.choice([8, 24, 64]),
            max_requests_per_batch=draw.choice([3, 8]),
            max_blocks_per_request=0,
            use_async_batching=bool(self.behind),
            use_cuda_graph=False,
            max_memory_percent=0.5,
            scheduler_type=draw.choice(sorted(SCHEDULER_MAPPING)),
            safety_margin=draw.choice([None, 0.0, 0.15]),
            cpu_offload_space=self.host * blocks * len(kinds) * 16 * self.page / 2**30,
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(continuous_api, "ContinuousBatchingAsyncIOs", Ahead)
            empty = torch.empty
            patch.setattr(torch, "empty", lambda *size, pin_memory=False, **more: empty(*size, **more))
            return self.processor(model, how)

    def processor(self, model: Any, how: Any) -> Any:
        """Make a processor, as the manager does."""
        alone = DistributedHelper(None, None)
        cache = PagedAttentionCache(model, how, torch.device("cpu"), alone, torch.float32)
        return continuous_api.ContinuousBatchProcessor(
            cache=cache,
            config=model,
            generation_config=GenerationConfig(do_sample=False),
            continuous_batching_config=how,
            logit_processor=ContinuousBatchingLogitsProcessorList(LogitsProcessorList()),
            input_queue=self.requests,
            cancel_queue=self.cancels,
            output_router=continuous_api.OutputRouter(),
            background_thread_status=continuous_api.BackgroundThreadStatus(),
            model_device=torch.device("cpu"),
            model_dtype=torch.float32,
            scheduler=SCHEDULER_MAPPING[how.scheduler_type](cache, how.safety_margin, how.max_requests_per_batch),
            distributed_helper=alone,
        )

    notices = (*lives.Life.notices, LookupError)

    def is_done(self) -> bool:
        """Tell whether all requests have their answers."""
        return self.requests.empty() and not self.scheduler.has_pending_requests()

    def happen(self) -> None:
        """Add a request now and then; cancel one, or begin anew, less often."""
        alive = sorted(self.scheduler.step_log.alive)
        if len(alive) < 12 and self.draw.random() < 0.5:
            self.ask()
        if self.cancelled and alive and self.draw.random() < 0.04:
            self.cancels.put(self.draw.choice(alive))
        if not self.behind and self.draw.random() < 0.01:
            self.scheduler.reset()

    def ask(self) -> None:
        """Add a request."""
        draw, tokens = self.draw, self.prompts.drawn()
        more = {"num_children": draw.randint(0, self.forks), "eos_token_id": draw.randrange(IDS)}
        self.requests.put(
            RequestState(f"r{self.asked:04}", tokens, max_new_tokens=draw.randint(1, MOST_NEW), **more)
        )
        self.asked += 1

    def step(self) -> None:
        """Decide a step, and take the tokens of one that was computed."""
        if not self.scheduler.prepare_next_batch():
            return
        self.worker.compute(self.scheduler)
        if self.begun or not self.behind:
            for each in self.scheduler.step_log.held[0].about:
                self.prompts.seen(transformers_steps.text(each.state))
            self.scheduler.update_batch()
        self.begun = True
