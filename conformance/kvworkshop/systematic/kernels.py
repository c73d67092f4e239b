"""Systematic mutants of the kernels' text, judged through the GPU caches over the CUDA kernels on the CPU.

Many are compiled into one program, each in a namespace. A mutant may write anywhere or never end, so each has a
process of its own. It is launched in several shapes, few of them with an item for everything, because a kernel
promises to do all the work in any shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kvconform.bugs.mutant import Mutant, numbered
from kvgpu import kernels
from kvgpu.adapter import Caches
from kvgpu.runtime import Block
from kvgpu.runtimes import cpp_compiler, launch_shapes
from kvgpu.runtimes.capture import Launch
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime, Memory
from kvspec.contract import CHAPTERS, Cache
from kvspec.geometry import Config
from kvworkshop.systematic import equivalents, kernel_operators
from kvworkshop.systematic.kernel_operators import Fault


class Part(NamedTuple):
    """A text: its name, the kernels that contain it, the sound texts that these also need, and the chapters whose
    traces are tried."""

    text: str
    kernels: tuple[str, ...]
    before: tuple[str, ...]
    chapters: tuple[str, ...]


def _each(kind: str) -> tuple[str, ...]:
    return tuple(f"{kind}{n}" for n in kernels.WORDS)


def _of(lie: str) -> tuple[str, ...]:
    return tuple(name for name, (of, _) in kernels.ATTENDS.items() if of == lie)


CASTS = tuple(name for name in kernels.COPIES if name.startswith("cast"))
ATTEND = (*_of("runs"), "attend_pages_f16")
"""The kernels that are enough to show a fault of their shared text."""

SCORES = tuple(name for name, (of, _) in kernels.SCORES.items() if of == "runs")

ATTENDED = ("attention", "page", "bucket", "batch", "draft", "residency")

PARTS = {
    "kernels/move": Part(
        "move.inc", _each("move"), (), ("ring", "growing", "snapshot", "draft", "residency", "page", "bucket")
    ),
    "kernels/place": Part("place.inc", _each("place"), (), ("store", "bucket", "batch", "draft", "residency")),
    "kernels/step": Part("step.inc", _each("step"), (), ("batch", "residency", "attention")),
    "kernels/scatter": Part("scatter.inc", _each("scatter"), (), ("batch", "attention")),
    "kernels/page": Part("page.inc", _each("page"), (), ("page", "residency")),
    "kernels/layer": Part("layer.inc", _each("layer"), (), ("layers", "snapshot")),
    "kernels/fold": Part("fold.inc", tuple(kernels.FOLDS), ("strict.inc",), ("layers", "snapshot")),
    "kernels/prepare": Part(
        "prepare.inc", ("prepare",), (), ("growing", "ring", "store", "page", "copy", "mem", "bucket")
    ),
    "kernels/lengths": Part("lengths.inc", ("bound", "guards", "clear"), (), ("store", "batch", "bucket")),
    "kernels/tables": Part("tables.inc", ("number", "poison"), (), ("page",)),
    "kernels/casts": Part("casts.inc", (*CASTS, "rope_f16", "rope_bf16"), ("strict.inc",), ("copy", "rope")),
    "kernels/copy": Part("copy.inc", tuple(kernels.COPIES), ("casts.inc",), ("copy", "mem", "residency")),
    "kernels/rope": Part("rope.inc", tuple(kernels.ROPES), ("casts.inc", "strict.inc"), ("rope", "forms")),
    "kernels/strict": Part("strict.inc", ("attend_join", *ATTEND), (), ATTENDED),
    "kernels/parts": Part(
        "parts.inc", ("attend_sinks", "attend_part", "attend_hides"), ("strict.inc",), ("attention",)
    ),
    "kernels/attend": Part("attend.inc", ATTEND, ("strict.inc",), ATTENDED),
    "kernels/scores": Part("scores.inc", SCORES, ("strict.inc", "capped.inc"), ("attention",)),
    "kernels/capped": Part("capped.inc", SCORES, ("strict.inc",), ("attention",)),
    "kernels/forms": Part("forms.inc", ("encode", "decode"), ("casts.inc", "strict.inc"), ("forms",)),
    "kernels/row_of_runs": Part(
        "row of runs", _of("runs"), ("strict.inc",), ("attention", "bucket", "batch", "draft")
    ),
    "kernels/row_of_pages": Part("row of pages", _of("pages"), ("strict.inc",), ("page", "attention")),
}
"""Every text that faults are planted in, by the label in the names of its mutants."""

CHUNK = 40
"""Mutants of one program."""

QUICK = tuple("-O0" if flag == "-O2" else flag for flag in cpp_compiler.FLAGS if flag != "-g1")
"""Each mutant runs for a moment: what takes long is to compile them."""

LIMIT = 1.0
"""Processor seconds for one trace: a kernel that does not end cannot be interrupted."""

SHAPES = (((1, 1, 1), (2, 1, 1)), ((3, 1, 2), (2, 1, 2)), ((2, 3, 1), (3, 1, 1)), ((1, 1, 2), (2, 3, 2)))
"""Launch shapes: items of a group, and groups. All are too few for much work, some too many for little work."""


ADDING = ("bound", "attend_sinks", "attend_part")
"""Kernels that change what they have read, so that the same work must not be done twice. They share it along axis 0
of the groups and axis 1 of the items. Of all other axes a launch has one."""

BEHIND, UNTOUCHED = 64, 0xA7
"""Bytes behind every block, and their value: they show kernels that write beyond it."""


class Others(CudaCPURuntime):
    """A runtime that replaces some kernels by others, launches each time in another shape, and checks the bytes
    behind the blocks of a launch."""

    def __init__(self) -> None:
        super().__init__()
        self.others: Mapping[str, str] = {}
        self.turn = 0

    def allocate(self, nbytes: int) -> Block:
        """New memory with a little more behind it."""
        block = super().allocate(nbytes)
        block.handle = Memory(self._library, nbytes + BEHIND)
        block.handle.bytes[nbytes:] = UNTOUCHED
        return block

    def _start(self, launch: Launch) -> None:
        self.turn += 1
        shape = launch_shapes.gpu(launch.work) if self.turn % 5 == 0 else SHAPES[self.turn % len(SHAPES)]
        if launch.kernel in ADDING:
            shape = (*shape[0][:2], 1), (shape[1][0], 1, 1)
        self.run(self.others.get(launch.kernel, launch.kernel), *shape, *launch.args)
        blocks = (a for a in launch.args if isinstance(a, Block) and a.handle is not None)
        if any((b.handle.bytes[b.nbytes :] != UNTOUCHED).any() for b in blocks):
            raise RuntimeError(f"{launch.kernel} wrote behind a block")


class Judged(Caches):
    """The GPU caches, guard bands checked. Shapes start again with a trace, so that it is the same every time."""

    def open(self, kind: str, config: Config) -> Cache:
        """A fresh cache."""
        self.runtime.turn = 0  # type: ignore[attr-defined]
        return super().open(kind, config)


@dataclass(frozen=True)
class Chunk:
    """Some of the faults of a text, compiled together. A text of None is the sound one."""

    label: str
    texts: tuple[str | None, ...]

    @property
    def part(self) -> Part:
        """The text that they are faults of."""
        return PARTS[self.label]

    def text(self) -> str:
        """The program."""
        before = "".join(map(kernels.text, ("prelude_cuda.h", *self.part.before)))
        bodies = (self._namespace(i, changed) for i, changed in enumerate(self.texts))
        return f"{before}{kernel_operators.APART}{''.join(bodies)}"

    def _namespace(self, i: int, changed: str | None) -> str:
        body = self._body(kernels.text(self.part.text) if changed is None else changed)
        renamed = "".join(f"#define {kernel} {kernel}_{i}\n" for kernel in self.part.kernels)
        macros = dict.fromkeys((*self.part.kernels, *re.findall(r"^#define (\w+)", body, re.MULTILINE)))
        undo = "".join(f"#undef {macro}\n" for macro in macros)
        called = "".join(f"using m{i}::{kernel}_{i};\n" for kernel in self.part.kernels)
        return f"{renamed}namespace m{i} {{\n{body}}}\n{undo}{called}"

    def _body(self, changed: str) -> str:
        """The text itself if it stands alone, and all kernels that it is in."""
        several = [kernel for kernel in self.part.kernels if kernel in kernels.SEVERAL]
        made = kernels.several(several, lambda name: changed if name == self.part.text else kernels.text(name))
        return f"{changed}\n{made}" if self.part.text in kernels.PLAIN else made

    def names(self) -> dict[str, int]:
        """The kernels in it, each with the number of its buffers."""
        numbers = range(len(self.texts))
        return {f"{kernel}_{i}": kernels.KERNELS[kernel] for i in numbers for kernel in self.part.kernels}

    def compile(self) -> None:
        """Compile it once. Raises CannotRun."""
        cpp_compiler.library(
            cpp_compiler.Program(self.text(), tuple(self.names()), flags=QUICK), cpp_compiler.find()
        )


@dataclass(frozen=True)
class Changed:
    """Makes the adapter that has the kernels of one number of each chunk. In a process there is one at a time."""

    chunks: tuple[Chunk, ...]
    number: int = 0

    def __call__(self) -> Any:
        runtime = _runtime()
        for chunk in self.chunks:
            runtime.learn(chunk.text(), chunk.names(), QUICK)
        changed = (kernel for chunk in self.chunks for kernel in chunk.part.kernels)
        runtime.others = {kernel: f"{kernel}_{self.number}" for kernel in changed}
        return Judged("cuda-cpu", runtime, checks=True)


@cache
def _runtime() -> Others:
    return Others()


def compiled(mutants: Iterable[Mutant], processes: int | None = None) -> None:
    """Compile what these need before the hunt, `processes` at once. Raises CannotRun."""
    chunks = dict.fromkeys(c for m in mutants if isinstance(m.adapter, Changed) for c in m.adapter.chunks)
    if chunks:
        _runtime()
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(Chunk.compile, chunks))


def mutants() -> Iterator[Mutant]:
    """Every systematic mutant of the kernels' text."""
    for label in PARTS:
        yield from of(label)


def control() -> Mutant:
    """The control of these mutants: the kernels themselves, compiled and launched as mutants are."""
    again = Changed(tuple(Chunk(label, (None,)) for label in PARTS))
    says = "The kernels themselves, compiled and launched as mutants are."
    return Mutant(
        "control/kernels again", "control", says, (), again, chapters=CHAPTERS, is_control=True, own_process=True
    )


@cache
def _faults(name: str) -> tuple[Fault, ...]:
    """The faults of a text; of several that mean the same, only one."""
    faults = kernel_operators.faults(name, kernels.text(name))
    return tuple({fault.text: fault for fault in faults}.values())


def of(label: str) -> Iterator[Mutant]:
    """The mutants of one text, each named by its function and its change."""
    part = PARTS[label]
    faults = _faults(part.text)
    chunks = [Chunk(label, tuple(f.text for f in faults[i : i + CHUNK])) for i in range(0, len(faults), CHUNK)]
    names = [f"{'.'.join(filter(None, (label, fault.function)))}: {fault.what}" for fault in faults]
    for i, (fault, name, id_) in enumerate(zip(faults, names, numbered(names), strict=True)):
        yield Mutant(
            id_,
            "systematic",
            f"line {fault.line} of {label}: {fault.what}",
            (),
            Changed((chunks[i // CHUNK],), i % CHUNK),
            chapters=part.chapters,
            place=(label,),
            stop_at_first_kill=True,
            equivalent=equivalents.argument(id_, name),
            own_process=True,
            limit=LIMIT,
        )
