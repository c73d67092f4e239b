"""OpenVINO GenAI in this process: its continuous batching, stepped, with shared prefixes and chunked prompts.

It gives the tokens of an answer, and no logits: take a probe of `--output tokens`. A checkpoint is turned into
OpenVINO's format by optimum-intel, once, into the probe's own folder. Nothing tells what was reused or evicted."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino_genai as genai
from openvino import Tensor

from kvadapters.serving.driver import Answer, Declared, Driver, EngineFailed, Request, Sample, Wanted
from kvspec.errors import BadInput, Refused

DTYPES = {"f32": "f32", "bf16": "bf16", "f16": "f16"}
ROWS = {None: "", "q8": "u8", "q4": "u4"}
"""Forms of rows, and what OpenVINO calls them; where none is wanted, rows are stored as they are computed."""
BLOCK = 32
"""Tokens of a block on a CPU: OpenVINO has no other size."""
BLOCKS, CHUNK, SEQUENCES = 64, 256, 16
"""Sizes where none are asked for."""
IDLE = 3_000
"""Steps without an answer after which the engine is taken for stuck."""
MODEL = "openvino_model.xml"


def driver(wanted: Wanted) -> Driver:
    """Start the engine with a probe. Raises BadInput for a dtype, rows or a size that it does not have."""
    if wanted.dtype not in DTYPES or wanted.rows not in ROWS:
        forms = " or ".join(filter(None, ROWS))
        raise BadInput(f"OpenVINO GenAI computes in {', '.join(DTYPES)}, and has rows of {forms}")
    if wanted.block not in (0, BLOCK):
        raise BadInput(f"OpenVINO GenAI has blocks of {BLOCK} tokens on a CPU, not of {wanted.block}")
    return Genai(wanted.only("block", "blocks", "chunk", "sequences", "drafts", "rows"))


def exported(folder: Path) -> Path:
    """Give the folder of a checkpoint in OpenVINO's format; make it, in 10 to 20 seconds, where it is not there."""
    into = folder / "openvino"
    if not (into / MODEL).exists():
        from optimum.exporters.openvino import main_export

        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            logging.disable(logging.WARNING)
            try:
                main_export(str(folder), into, task="text-generation-with-past", convert_tokenizer=True)
            finally:
                logging.disable(logging.NOTSET)
    return into


class Genai(Driver):
    """Steps the engine while somebody waits."""

    def __init__(self, wanted: Wanted) -> None:
        self.folder, self.drafts = exported(Path(wanted.folder)), wanted.drafts
        self.config = genai.SchedulerConfig()
        self.config.enable_prefix_caching = self.config.dynamic_split_fuse = True
        self.config.num_kv_blocks = wanted.blocks or BLOCKS
        self.config.max_num_batched_tokens = wanted.chunk or CHUNK
        self.config.max_num_seqs = wanted.sequences or SEQUENCES
        self.properties: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": DTYPES[wanted.dtype],
            "KV_CACHE_PRECISION": ROWS[wanted.rows] or DTYPES[wanted.dtype],
        }
        self.declared = Declared(
            "openvino-genai",
            genai.__version__,
            " ".join(f"{name}={value}" for name, value in self.properties.items()),
            tells="tokens",
            can=frozenset({"reuse", "concurrent", "cancel", "reset"}),
            block=BLOCK,
            blocks=self.config.num_kv_blocks,
            chunk=self.config.max_num_batched_tokens,
            sequences=self.config.max_num_seqs,
            drafts=self.drafts,
        )
        self.reset()

    def reset(self) -> None:
        """Start the engine again."""
        self.properties_now = {**self.properties, **({"prompt_lookup": True} if self.drafts else {})}
        self.engine: Any = genai.ContinuousBatchingPipeline(
            str(self.folder), self.config, "CPU", self.properties_now
        )
        self.number = 0
        self.open = dict[int, tuple[Any, list[int]]]()

    def submit(self, request: Request) -> Any:
        """Add a request. What the engine says of a wrong request is its refusal."""
        drafts = {"num_assistant_tokens": self.drafts, "max_ngram_size": 3} if self.drafts else {}
        asked = genai.GenerationConfig(max_new_tokens=request.new, ignore_eos=True, do_sample=False, **drafts)
        tokens = Tensor(np.array([request.tokens], np.int64))
        self.number += 1
        try:
            self.open[self.number] = (self.engine.add_request(self.number, tokens, asked), [])
        except RuntimeError as e:
            raise Refused("", str(e)) from None
        return self.number

    def wait(self, handle: Any) -> Answer:
        """Step until the answer is there."""
        request, tokens = self.open[handle]
        for _ in range(IDLE):
            self._take()
            status = request.get_status()
            if status == genai.GenerationStatus.FINISHED:
                del self.open[handle]
                return Answer((Sample(tuple(tokens)),))
            if status != genai.GenerationStatus.RUNNING:
                raise EngineFailed(f"the request is {status.name}, behind {len(tokens)} tokens")
            self.step(1)
        raise EngineFailed(f"no answer after {IDLE} steps")

    def _take(self) -> None:
        """Read what requests have made."""
        for request, tokens in self.open.values():
            while request.can_read():
                tokens += [int(t) for output in request.read().values() for t in output.generated_ids]

    def step(self, count: int) -> None:
        """Step the engine."""
        for _ in range(count):
            if not self.engine.has_non_finished_requests():
                return
            try:
                self.engine.step()
            except RuntimeError as e:
                raise EngineFailed(str(e)) from e
        self._take()

    def cancel(self, handle: Any) -> None:
        """Cancel a request."""
        request, _ = self.open.pop(handle)
        request.cancel()

    def counts(self) -> Mapping[str, int]:
        """Nothing is counted."""
        return {}
