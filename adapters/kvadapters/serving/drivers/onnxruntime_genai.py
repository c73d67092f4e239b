"""onnxruntime-genai in this process.

`driver` keeps a generator in each slot. A generator appends tokens, is rewound, and gives the logits of all tokens.
`engine` is the engine of static batches. It gives tokens alone: take a probe of `--output tokens`. A request whose
text begins with that of the last one goes on as its next turn. A probe of `--format onnx` is loaded as it is. The
builder of onnxruntime-genai turns another checkpoint into ONNX, once for each form of rows, into the probe's own
folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai as genai

from kvadapters.serving.driver import Declared, Wanted
from kvadapters.serving.slots import Piece, Slots
from kvadapters.serving.stepped import Output, Stepped
from kvspec.errors import BadInput
from kvspec.geometry import Array

ROWS = {"q8_0": ("int8_per_tensor", 127), "q4_0": ("int4_per_tensor", 7)}
"""Forms of rows as precise as the builder's, what it calls them, and the largest number that a row holds."""
LONGEST, CHUNK, SEQUENCES = 512, 64, 4
"""Sizes that are taken where none are asked for."""


def driver(wanted: Wanted) -> Stepped:
    """Start slots of generators. Raises BadInput for a dtype or a form of rows that it does not have on a CPU."""
    wanted = wanted.only("chunk", "drafts", "sequences", "longest", "rows")
    sizes = {"longest": wanted.longest or LONGEST, "sequences": wanted.sequences or SEQUENCES}
    model, chunk = _model(wanted, {"search": {"max_length": sizes["longest"]}}), wanted.chunk or CHUNK
    return Stepped(
        lambda: Slots(Generators(model, chunk, sizes["longest"]), sizes["sequences"], wanted.drafts),
        _declared("generators", wanted, chunk=chunk, drafts=wanted.drafts, **sizes),
    )


def engine(wanted: Wanted) -> Stepped:
    """Start the engine. Raises BadInput as `driver` does."""
    wanted = wanted.only("sequences", "longest", "rows")
    sizes = {"longest": wanted.longest or LONGEST, "sequences": wanted.sequences or SEQUENCES}
    batches = {"static_batching": {"max_batch_size": sizes["sequences"]}}
    model = _model(wanted, {"search": {"max_length": sizes["longest"]}, "engine": batches})
    return Stepped(lambda: Turns(model, sizes["longest"]), _declared("engine", wanted, tells="tokens", **sizes))


def _declared(what: str, wanted: Wanted, **more: Any) -> Declared:
    can = frozenset({"reuse", "concurrent", "cancel", "cached", "reset"})
    rows = f" kv_cache={ROWS[wanted.rows][0]}" if wanted.rows else ""
    return Declared(f"onnxruntime-genai {what}", genai.__version__, f"-p fp32 -e cpu{rows}", can=can, **more)


def _model(wanted: Wanted, changes: Mapping[str, Any]) -> Any:
    if wanted.dtype != "f32" or wanted.rows not in (None, *ROWS):
        raise BadInput(f"onnxruntime-genai computes in f32 on a CPU, and has rows of {' or '.join(ROWS)}")
    config = genai.Config(str(built(Path(wanted.folder), wanted.rows)))
    threads = {"decoder": {"session_options": {"intra_op_num_threads": 1}}}
    config.overlay(json.dumps({**changes, "model": threads}))
    return genai.Model(config)


def built(folder: Path, rows: str | None) -> Path:
    """Give the folder of a checkpoint in ONNX. For a probe of `--format onnx` it is its own folder. Otherwise the
    builder has made one before, or makes it now in some seconds."""
    if rows is None and (folder / "genai_config.json").exists():
        return folder
    into = folder / f"onnx-{rows or 'f32'}"
    if not (into / "genai_config.json").exists():
        words = ["-m", str(folder), "-o", str(into), "-p", "fp32", "-e", "cpu", "-c", str(into)]
        words += ["--extra_options", *_scheme(folder, rows)] if rows else []
        said = subprocess.run(
            [sys.executable, "-m", "onnxruntime_genai.models.builder", *words], capture_output=True
        )
        if said.returncode:
            end = said.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise BadInput(f"the builder of onnxruntime-genai makes no model of {folder}: {end}")
    return into


def _scheme(folder: Path, rows: str) -> list[str]:
    """Give the builder's options for rows. It takes their scales from the first rows of a text, whose elements are
    as large as those of any other. Keys are largest where RoPE does not turn them."""
    name, largest = ROWS[rows]
    model = genai.Model(genai.Config(str(built(folder, None))))
    generator, scales, file = _generator(model), dict[str, list[float]](), folder / f"scales-{rows}.json"
    generator.append_tokens(np.arange(8, dtype=np.int32))
    layers = json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    for part in ("key", "value"):
        held = [generator.get_output(f"present.{number}.{part}")[:, :, :8] for number in range(layers)]
        scales[f"{part[0]}_scales"] = [float(np.abs(each).max()) / largest for each in held]
    file.write_text(json.dumps({"scales": scales}), encoding="utf-8")
    return [f"kv_cache_quant_scheme={name}", f"kv_cache_scale_file={file}"]


def _generator(model: Any) -> Any:
    return genai.Generator(model, genai.GeneratorParams(model))


@dataclass(eq=False)
class _Turn:
    """A turn of a request of the engine's. `text` is all that the request holds: prompts and answers."""

    request: Any
    text: list[int]
    prompt: int
    reused: int
    ended: bool = False

    def output(self, number: int) -> Output:
        """Give the answer."""
        return Output(number, self.text[self.prompt :], reused=self.reused)


class Generators:
    """A memory of sequences for `Slots`: a generator for each, whose rows no other one can have."""

    copies = False

    def __init__(self, model: Any, most: int, longest: int) -> None:
        self.model, self.most, self.longest, self.open = model, most, longest, dict[int, Any]()

    def keep(self, sequence: int, count: int) -> int:
        """Rewind a generator, or begin a new one where it refuses to, as rows of a window are gone; give how many
        tokens it has."""
        if sequence not in self.open:
            return 0
        try:
            self.open[sequence].rewind_to(count)
        except RuntimeError:
            del self.open[sequence]
            return 0
        return int(self.open[sequence].token_count())

    def copy(self, source: int, sequence: int, count: int) -> None:
        """Nothing is copied."""

    def decode(self, pieces: Sequence[Piece]) -> list[Array]:
        """Append tokens to one generator after the other."""
        return [row for piece in pieces for row in self._appended(piece)]

    def _appended(self, piece: Piece) -> Array:
        if piece.slot.number not in self.open:
            self.open[piece.slot.number] = _generator(self.model)
        generator = self.open[piece.slot.number]
        generator.append_tokens(np.array(piece.tokens, np.int32))
        logits: Array = generator.get_output("logits")[0]
        return logits[len(logits) - piece.outputs :]


class Turns:
    """The engine, as `Stepped` drives it. The last request stays open: it can go on while it is the only one."""

    def __init__(self, model: Any, longest: int) -> None:
        self.engine, self.longest, self.number, self.cached = genai.Engine(model), longest, 0, 0
        self.buffer = self.engine.create_event_buffer(64)
        self.open = dict[int, _Turn]()
        self.last: _Turn | None = None

    def add(self, tokens: list[int], new: int, **unknown: Any) -> int:
        """Begin a turn. Raises ValueError if it does not fit."""
        if len(tokens) + new > self.longest:
            raise ValueError(f"{len(tokens)} tokens and {new} new ones; a request has at most {self.longest}")
        last, self.last, self.number = self.last, None, self.number + 1
        if last and self._goes_on(last, tokens, new):
            turn = _Turn(last.request, list(tokens), len(tokens), len(last.text) - 1)  # the last token has no row
        else:
            if last:
                last.request.close()
            turn = _Turn(self.engine.create_request(), list(tokens), len(tokens), 0)
            _begin(turn.request, tokens, new)
        self.open[self.number] = turn
        self.cached += turn.reused
        return self.number

    def _goes_on(self, last: _Turn, tokens: list[int], new: int) -> bool:
        """Begin a further turn if tokens go on from the last one and the engine takes it. The engine refuses while
        others of the same batch are still there."""
        had = len(last.text)
        if self.open or len(tokens) <= had or tokens[:had] != last.text:
            return False
        try:
            _begin(last.request, tokens[had:], new)
        except RuntimeError:
            return False
        return True

    def step(self) -> list[Output]:
        """Run the engine once; give the answers that have ended. Raises RuntimeError if one failed."""
        for event in self.engine.run(self.buffer) or ():
            turn = next((each for each in self.open.values() if each.request == event.request), None)
            if event.error_code != genai.EngineErrorCode.NONE:
                raise RuntimeError(f"{event.error_code.name} at a request")
            if turn is None:
                raise RuntimeError("the engine tells of a request that is closed")
            if int(event.flags) & int(genai.EngineEventFlags.TOKEN):
                turn.text.append(int(event.token))
            turn.ended = event.finish_reason != genai.FinishReason.NONE
        return [self._ended(number) for number, turn in list(self.open.items()) if turn.ended]

    def _ended(self, number: int) -> Output:
        """Give an answer. Its request stays open in the place of the one that was the last."""
        if self.last:
            self.last.request.close()
        self.last = self.open.pop(number)
        return self.last.output(number)

    def abort(self, number: int) -> None:
        """Close a request."""
        self.open.pop(number).request.close()

    def counts(self) -> Mapping[str, int]:
        """Give how many tokens were not computed again."""
        return {"cached tokens": self.cached}


def _begin(request: Any, tokens: list[int], new: int) -> None:
    """Begin a turn."""
    options = genai.TurnOptions(request)
    options.set_do_sample(False)
    options.set_max_generated_tokens(new)
    request.begin_turn(np.array(tokens, np.int32), options)
