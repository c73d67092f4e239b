"""Hugging Face transformers, continuous batching: a paged cache that shares prefixes, a scheduler, chunked prompts.

The manager works in a thread of its own. It streams a token of each request after each step, in the order of the
rows of the step's logits; a hook on the model keeps these rows. Its log tells what it reuses, gives
up and preempts."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import transformers
from transformers import AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig

from kvadapters.probe.engines.transformers import DTYPES
from kvadapters.serving.driver import Answer, Declared, Driver, EngineFailed, Request, Sample, Wanted
from kvspec.errors import Refused

BLOCK, BLOCKS, CHUNK, SEQUENCES = 16, 64, 256, 16
"""Sizes where none are asked for: without a GPU, the manager's own would take most of the memory there is."""
SILENCE = 30.0
"""Seconds without a token after which the manager is taken for stuck."""
SAID = {
    "evictions": re.compile(r"Evicting (\d+) cached blocks"),
    "preemptions": re.compile(r"Offloaded (\d+) requests"),
}
PREFIX = re.compile(r"Found a prefix match of (\d+) tokens for request (\S+)")


def driver(wanted: Wanted) -> Driver:
    """Load a probe, and start the manager."""
    return Batching(wanted.only("block", "blocks", "chunk", "sequences"))


class _Log(logging.Handler):
    """Counts what the manager says that it does."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.counts, self.cached = Counter({"cached tokens": 0, **dict.fromkeys(SAID, 0)}), dict[str, int]()

    def emit(self, record: logging.LogRecord) -> None:
        """Read one line."""
        line = record.getMessage()
        for name, said in SAID.items():
            if found := said.match(line):
                self.counts[name] += int(found[1])
        if found := PREFIX.match(line):
            self.counts["cached tokens"] += int(found[1])
            self.cached.setdefault(found[2], int(found[1]))


class Batching(Driver):
    """Adds requests to a manager, and takes what it streams."""

    def __init__(self, wanted: Wanted) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(
            wanted.folder, dtype=DTYPES[wanted.dtype], local_files_only=True
        ).eval()
        sizes = {
            "page_size": wanted.block or BLOCK,
            "num_blocks": wanted.blocks or BLOCKS,
            "max_batch_tokens": wanted.chunk or CHUNK,
            "max_requests_per_batch": wanted.sequences or SEQUENCES,
        }
        self.config = ContinuousBatchingConfig(**sizes)
        self.model.register_forward_hook(self._hook, with_kwargs=True)
        logger = logging.getLogger("ContinuousBatchingLogger")
        logger.setLevel(logging.DEBUG)
        logger.handlers = [self._log()]
        self.declared = Declared(
            "transformers continuous batching",
            transformers.__version__,
            " ".join(f"{name}={value}" for name, value in sizes.items()),
            can=frozenset({"concurrent", "cancel", "cached", "reset"} | ({"reuse"} if self._shares() else set())),
            block=sizes["page_size"],
            blocks=sizes["num_blocks"],
            chunk=sizes["max_batch_tokens"],
            sequences=sizes["max_requests_per_batch"],
        )
        self.manager: Any = None
        self.reset()

    def _log(self) -> _Log:
        self.log = _Log()
        return self.log

    def _shares(self) -> bool:
        """Tell whether prefixes are shared: not where a layer has a window."""
        return "sliding_attention" not in (getattr(self.model.config, "layer_types", None) or ())

    def _hook(self, model: Any, words: Any, more: Mapping[str, Any], output: Any) -> None:
        """Keep the rows of requests that have a token now: each is that of the last token which it put into this
        step. Requests whose prompt goes on leave rows of no meaning behind these."""
        ends, last = {int(end) - 1 for end in more["cu_seq_lens_q"][1:]}, -1
        for at, row in zip(more["logits_indices"].tolist(), output.logits[0], strict=True):
            if at > last and at in ends:
                self.rows.append(row.float().numpy())
                last = at

    def reset(self) -> None:
        """Start the manager again."""
        self.close()
        self.rows = deque[np.ndarray]()
        self.given = defaultdict[str, list[np.ndarray]](list)
        self.ended = dict[str, Any]()
        self.number = 0
        config = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=self.model.config.vocab_size - 1)
        self.manager = self.model.init_continuous_batching(config, self.config)
        self.manager.start()

    def close(self) -> None:
        """Stop the manager."""
        if self.manager is not None:
            self.manager.stop(block=True, hard_stop=True)

    def submit(self, request: Request) -> Any:
        """Add a request."""
        self.number += 1
        name = f"r{self.number}"
        self.log.cached.pop(name, None)
        self.manager.add_request(list(request.tokens), name, request.new, streaming=True)
        return name

    def wait(self, handle: Any) -> Answer:
        """Take what is streamed until the request has ended."""
        while handle not in self.ended:
            self._take(SILENCE)
        said, rows = self.ended.pop(handle), self.given.pop(handle, [])
        if said.error:
            if not rows and "exceed" in said.error:
                raise Refused("", said.error)
            raise EngineFailed(said.error)
        tokens = tuple(map(int, said.generated_tokens))
        return Answer((Sample(tokens, np.stack(rows) if rows else None),), self.log.cached.get(handle, 0))

    def _take(self, seconds: float) -> None:
        said = self.manager.get_result(timeout=seconds)
        if said is None:
            error = self.manager.background_thread_status.fatal_error
            self.reset()
            raise EngineFailed(f"the manager is stuck or has ended: {error}")
        if not said.error:
            self.given[said.request_id].append(self.rows.popleft())
        if said.is_finished():
            self.ended[said.request_id] = said

    def cancel(self, handle: Any) -> None:
        """Cancel a request."""
        self.manager.cancel_request(handle)

    def counts(self) -> Mapping[str, int]:
        """Give what the manager's log counts."""
        return self.log.counts
