"""`kvconform vectors`: writes frozen traces for an engine's tests, in a folder or in the engine's language, or
checks that they still hold."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from kvconform.message import LiveLine, tell
from kvconform.runner.settings import require_known
from kvconform.vectors import export, files, verify
from kvconform.vectors.languages import c_header, packages
from kvspec.chapters import CHAPTERS
from kvspec.errors import BadInput
from kvspec.reading.clauses import digest


def main(options: Namespace) -> int:
    """Export, write for a language, or verify; return 1 if a vector is not what the reference gives."""
    for chapter in options.chapter:
        require_known("chapter", chapter, CHAPTERS)
    return {"export": _export, "verify": _verify}.get(options.action, _language)(options)


def _export(options: Namespace) -> int:
    """Write a folder of vectors."""
    index = export.export(Path(options.out), options.source, options.chapter, options.verify, _Progress())
    counts = ", ".join(f"{count} {what}" for what, count in index["counts"].items())
    print(f"{options.out}: {counts}, in {len(index['files'])} files; README.md there says how to replay them")
    return 0


def _language(options: Namespace) -> int:
    """Write a header of C, a package for npm, or a crate."""
    path = Path(options.out)
    if options.action == "c-header":
        print(c_header.write_header(path, options.chapter))
    else:
        make = {"npm": packages.npm, "crate": packages.crate}[options.action]
        print(packages.write_package(path, make(options.chapter)))
    return 0


class _Progress:
    """Prints to standard error which file is read now: on a terminal in one line, elsewhere every few seconds."""

    EVERY = 3.0
    """Seconds between lines if the output is no terminal."""

    def __init__(self) -> None:
        self._done, self._line = 0, LiveLine(self.EVERY)

    def __call__(self, file: Path, files: int) -> None:
        self._done += 1
        self._line.show(f"[{self._done:2d}/{files}] {file.name}")
        if self._done == files:
            self._line.clear()


def _verify(options: Namespace) -> int:
    """Compare a folder, or the frozen vectors, with the reference; name each vector that differs."""
    names, found = _folder(options) if options.folder else _frozen(options)
    if not names:
        raise BadInput(f"{options.folder or 'the package'}: no vectors of these sources and chapters")
    wrong = 0
    for text in found:
        wrong += 1
        print(text)
    said = f"{wrong} differ from what the reference gives" if wrong else "exactly what the reference gives"
    print(f"{options.folder or 'the frozen vectors'}, {len(names)} files: {said}")
    return 1 if wrong else 0


def _folder(options: Namespace) -> tuple[list[str], Iterator[str]]:
    folder = Path(options.folder)
    index = export.index_of(folder)
    if index.get("spec") != digest():
        tell(f"{folder} was made from other clauses ({index.get('spec')})", "vectors")
    wanted = set(files.names(options.source, options.chapter))
    chosen = [entry["file"] for entry in index["files"] if entry["file"] in wanted]
    return chosen, export.differences(folder, index, chosen)


def _frozen(options: Namespace) -> tuple[list[str], Iterable[str]]:
    found = list(files.there(files.FROZEN, options.source, options.chapter))
    return [f.name for f in found], chain.from_iterable(verify.differences(f, with_tensors=False) for f in found)
