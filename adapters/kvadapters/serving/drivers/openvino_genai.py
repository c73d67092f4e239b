"""OpenVINO GenAI in this process: its continuous batching, stepped, with shared prefixes and chunked prompts.

It gives the tokens of an answer, and no logits: take a probe of `--output tokens`. optimum-intel converts a
checkpoint to OpenVINO's format once, into the probe's own folder. Nothing tells what was reused or evicted."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino_genai as genai
from openvino import Tensor

from kvadapters.probe import Probe
from kvadapters.serving.driver import Declared, Driver, Wanted
from kvadapters.serving.stepped import Output, Stepped
from kvspec.errors import BadInput

DTYPES = ("f32", "bf16", "f16")
ROWS = {None: "", "q8": "u8", "q4": "u4"}
"""Forms of rows, and what OpenVINO calls them; where none is wanted, rows are stored as they are computed."""
BLOCK = 32
"""Tokens of a block on a CPU: OpenVINO has no other size."""
BLOCKS, CHUNK, SEQUENCES = 64, 256, 16
"""Sizes that are taken where none are asked for."""
MODEL = "openvino_model.xml"


def driver(wanted: Wanted) -> Driver:
    """Start the engine with a probe. Raises BadInput for a dtype, rows or a size that it does not have."""
    return _driven(wanted, Pipeline, {"concurrent", "cancel"})


def adapters(wanted: Wanted) -> Driver:
    """Start it with a probe that has adapters. `generate` alone changes them from request to request."""
    return _driven(wanted.only("block", "blocks", "chunk", "sequences", "rows"), Generating, {"adapters"})


def draft_model(wanted: Wanted) -> Driver:
    """Start it with a second model that drafts: a probe of one layer. Raises BadInput without drafts, too."""
    if not wanted.drafts:
        raise BadInput("a draft model drafts so many tokens at a time: --declare drafts=3")
    return _driven(wanted, Drafted, {"concurrent", "cancel"})


def _driven(wanted: Wanted, pipeline: type[Pipeline], can: set[str]) -> Driver:
    if wanted.dtype not in DTYPES or wanted.rows not in ROWS:
        forms = " or ".join(filter(None, ROWS))
        raise BadInput(f"OpenVINO GenAI computes in {', '.join(DTYPES)}, and has rows of {forms}")
    if wanted.block not in (0, BLOCK):
        raise BadInput(f"OpenVINO GenAI has blocks of {BLOCK} tokens on a CPU, not of {wanted.block}")
    wanted = wanted.only("block", "blocks", "chunk", "sequences", "drafts", "rows")
    precisions = {
        "INFERENCE_PRECISION_HINT": wanted.dtype,
        "KV_CACHE_PRECISION": ROWS[wanted.rows] or wanted.dtype,
    }
    config = genai.SchedulerConfig()
    config.enable_prefix_caching = config.dynamic_split_fuse = True
    config.num_kv_blocks = wanted.blocks or BLOCKS
    config.max_num_batched_tokens = wanted.chunk or CHUNK
    config.max_num_seqs = wanted.sequences or SEQUENCES
    declared = Declared(
        "openvino-genai",
        genai.__version__,
        " ".join(f"{name}={value}" for name, value in precisions.items()),
        tells="tokens",
        can=frozenset({"reuse", "reset", *can}),
        block=BLOCK,
        blocks=config.num_kv_blocks,
        chunk=config.max_num_batched_tokens,
        sequences=config.max_num_seqs,
        drafts=wanted.drafts,
    )
    return Stepped(partial(pipeline, exported(Path(wanted.folder)), config, precisions, wanted.drafts), declared)


def exported(folder: Path) -> Path:
    """Convert a checkpoint to OpenVINO's format, unless that was done before: 10 to 20 seconds. Give its folder."""
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


class Pipeline:
    """The engine, as `Stepped` drives it: `add`, `step`, `abort`."""

    def __init__(self, folder: Path, config: Any, properties: Mapping[str, Any], drafts: int) -> None:
        more, self.more = self.drafting(folder, drafts) if drafts else ({}, {})
        self.engine: Any = genai.ContinuousBatchingPipeline(str(folder), config, "CPU", {**properties, **more})
        self.number = 0
        self.open = dict[int, tuple[Any, list[int]]]()

    def drafting(self, folder: Path, drafts: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give what the engine is started with so that it drafts, and what a request says."""
        return {"prompt_lookup": True}, {"num_assistant_tokens": drafts, "max_ngram_size": 3}

    def wanted(self, new: int) -> Any:
        """Give what a request wants: so many tokens, each the likeliest."""
        return genai.GenerationConfig(max_new_tokens=new, ignore_eos=True, do_sample=False, **self.more)

    def add(self, tokens: Sequence[int], new: int, **unknown: Any) -> int:
        """Add a request; give its number. What the engine says of a wrong one is a ValueError."""
        self.number += 1
        try:
            request = self.engine.add_request(self.number, Tensor(np.array([tokens], np.int64)), self.wanted(new))
        except RuntimeError as e:
            raise ValueError(str(e)) from None
        self.open[self.number] = request, []
        return self.number

    def step(self) -> list[Output]:
        """Step the engine; give the answers that have ended."""
        if self.engine.has_non_finished_requests():
            self.engine.step()
        ended = [output for number in self.open if (output := self._read(number))]
        for output in ended:
            del self.open[output.id]
        return ended

    def _read(self, number: int) -> Output | None:
        """Read what a request has made; give its answer if it has ended."""
        request, tokens = self.open[number]
        while request.can_read():
            tokens += [int(t) for output in request.read().values() for t in output.generated_ids]
        status = request.get_status()
        if status not in (genai.GenerationStatus.RUNNING, genai.GenerationStatus.FINISHED):
            raise RuntimeError(f"request {number} is {status.name}, behind {len(tokens)} tokens")
        return Output(number, tokens) if status == genai.GenerationStatus.FINISHED else None

    def abort(self, number: int) -> None:
        """Cancel a request."""
        request, _ = self.open.pop(number)
        request.cancel()

    def counts(self) -> Mapping[str, int]:
        """Give no counts: the engine tells none."""
        return {}


class Generating(Pipeline):
    """The engine, asked by `generate`, which takes requests of one adapter and answers them together."""

    def __init__(self, folder: Path, config: Any, properties: Mapping[str, Any], drafts: int) -> None:
        files = sorted(folder.parent.glob("adapters/*/adapter_model.safetensors"))
        found = {file.parent.name: genai.Adapter(str(file)) for file in files}
        self.adapters = {"": genai.AdapterConfig(), **{n: genai.AdapterConfig(a) for n, a in found.items()}}
        self.waiting = dict[int, tuple[str, Tensor, Any]]()
        all_of_them = genai.AdapterConfig(list(found.values()))
        super().__init__(folder, config, {**properties, "adapters": all_of_them}, drafts)

    def add(self, tokens: Sequence[int], new: int, adapter: str = "", **unknown: Any) -> int:
        """Keep a request until the next step; give its number."""
        asked = self.wanted(new)
        asked.adapters = self.adapters[adapter]
        self.number += 1
        self.waiting[self.number] = adapter, Tensor(np.array([tokens], np.int64)), asked
        return self.number

    def step(self) -> list[Output]:
        """Answer the oldest request, and those with its adapter."""
        oldest = next((adapter for adapter, *_ in self.waiting.values()), "")
        numbers = [number for number, (adapter, *_) in self.waiting.items() if adapter == oldest]
        asked = [self.waiting.pop(number) for number in numbers]
        made = self.engine.generate([prompt for _, prompt, _ in asked], [config for *_, config in asked])
        return [
            Output(n, [int(t) for t in each.m_generation_ids[0]]) for n, each in zip(numbers, made, strict=True)
        ]


class Drafted(Pipeline):
    """The engine with a draft model, of which some tokens are accepted."""

    def drafting(self, folder: Path, drafts: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the draft model, which is written beside the probe."""
        small = folder.parent / "draft"
        if not small.exists():
            whole = Probe.load(folder.parent)
            one = Probe.of(whole.architecture.name, "full", "tokens")
            replace(one, layout=replace(one.layout, kv_heads=whole.layout.kv_heads)).write(small)
        return {"draft_model": genai.draft_model(str(exported(small)), "CPU")}, {"num_assistant_tokens": drafts}
