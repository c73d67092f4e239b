"""What is frozen, made again: `python -m tools.freeze_vectors [--write] [--chapter C] [NAME ...]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from kvconform.generate import frozen_covers, frozen_large, frozen_traces
from kvconform.generate.registry import planned
from kvconform.vectors import SOURCES, files, vector
from kvconform.vectors.vector import LICENCE, VERSION, Vector, Written, counts
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.registry import KINDS
from tools.freezing import covers, large, traces, walks
from tools.freezing.mutants import of_matrix
from tools.freezing.sources import MAKERS

ANSWERS = "answers"
"""What the reference answers: to the covers as they are frozen, to the walks, to large traces, and to examples."""

WALKS = "walks"
"""The walks of a claim of every chapter, with what the reference answers to them."""

LARGE = "large"
"""What the reference answers to large traces."""

TRACES = "traces"
"""Worked examples, and what a quick run explores, with what the reference answers."""

NAMES = ("covers", WALKS, LARGE, TRACES, *SOURCES)

NAMED = f"of {', '.join(NAMES)}; or {ANSWERS}: these and the answers to covers, where steps cite otherwise"

Computed = tuple[Path, Callable[[], str | None]]
"""A file that may be frozen, and what computes its text; None where there is nothing to freeze."""


def main(arguments: Sequence[str]) -> int:
    """Compare what is computed with what is frozen; 1 if they differ and nothing was written."""
    options = _options(arguments)
    changed = 0
    matrix = Path(options.mutants) if options.mutants else None
    for file, compute in _each(options.names or NAMES, options.chapter or CHAPTERS, matrix):
        was, new = file.read_text(encoding="utf-8") if file.is_file() else None, compute()
        if was is new is None:
            continue
        changed += was != new
        if options.write and was != new:
            _put(file, new)
        said = "as frozen" if was == new else "written again" if options.write else "DIFFERS from what is frozen"
        print(f"{file.name}: {said}", flush=True)
    return int(changed > 0 and not options.write)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.freeze_vectors", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[ANSWERS, *NAMES, []], metavar="NAME", help=NAMED)
    parser.add_argument("--write", action="store_true", help="write what changed, for review")
    parser.add_argument("--chapter", action="append", choices=CHAPTERS, metavar="C", help="of this chapter alone")
    parser.add_argument("--mutants", metavar="FILE", help="mutants.json of `kvconform mutants --report`")
    return parser.parse_args(arguments)


def _put(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_text(text, encoding="utf-8")


def _each(names: Sequence[str], chapters: Sequence[str], matrix: Path | None) -> Iterator[Computed]:
    """Every file of these names and chapters. Without a matrix the mutants' vectors are those that are frozen."""
    for name in names:
        if name in (WALKS, ANSWERS):
            kinds = [kind for kind in KINDS if kind in chapters]
            yield from ((Path(str(frozen_traces.walks_path(k))), partial(walks.compute, k)) for k in kinds)
        if name in (LARGE, ANSWERS):
            yield from ((Path(str(frozen_large.path(c))), partial(large.compute, c)) for c in chapters)
        if name in (TRACES, ANSWERS):
            yield from ((Path(str(frozen_traces.path(c))), partial(traces.compute, c)) for c in chapters)
        if name in (WALKS, LARGE, TRACES):
            continue
        if name in ("covers", ANSWERS):
            covered, make = [p for p in planned() if p in chapters], _answers if name == ANSWERS else _cover
            yield from ((Path(str(frozen_covers.path(p))), partial(make, p)) for p in covered)
            continue
        found = _found(matrix) if name == "mutants" and matrix else None
        for p in chapters:
            yield files.FROZEN / files.name(name, p), partial(_vectors, name, p, found)


def _found(matrix: Path) -> dict[str, list[Vector]]:
    """The mutants' vectors of a matrix, by chapter; those that have none are named."""
    frozen = {v.id: v for chapter in CHAPTERS for v in _frozen("mutants", chapter)}
    vectors, left_out = of_matrix(matrix, frozen)
    for id_, why in left_out.items():
        print(f"no vector of {id_}: {why}")
    return vectors


def written(source: str, chapter: str, vectors: Iterable[Vector]) -> Written:
    """Replay vectors on the reference and write the steps."""
    tensors: dict[str, Array] = {}
    listed = [vector.vector(v, tensors) for v in vectors]
    head = {"kvvectors": VERSION, "licence": LICENCE, "source": source, "chapter": chapter}
    return Written({**head, "counts": counts(listed), "vectors": listed}, tensors)


def _cover(chapter: str) -> str:
    return covers.text(covers.compute(chapter))


def _answers(chapter: str) -> str:
    return covers.text(covers.answered(chapter))


def _vectors(source: str, chapter: str, found: dict[str, list[Vector]] | None) -> str | None:
    """The document of a source and a chapter. Raises BadInput where an id stands twice."""
    make = MAKERS.get(source)
    listed = list(found[chapter] if found else make(chapter) if make else _frozen(source, chapter))
    twice = [id_ for id_, n in Counter(v.id for v in listed).items() if n > 1]
    if twice:
        raise BadInput(f"{source}-{chapter}: {', '.join(twice)} stands twice")
    return files.text(written(source, chapter, listed).document) if listed else None


def _frozen(source: str, chapter: str) -> Iterable[Vector]:
    file = files.FROZEN / files.name(source, chapter)
    return map(vector.read, files.read(file)["vectors"]) if file.is_file() else ()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
