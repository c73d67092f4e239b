"""`kvconform site [RECORD...] --out DIR`: the spec as a site of plain files, with the verdicts of these records.

With `--repository` it also has the guides, the bugs with their pictures, and the history of each clause.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from time import monotonic

from kvconform.bugs import known_bugs
from kvconform.commands.board import board
from kvconform.commands.clause_history import history
from kvconform.judge import steps, trial
from kvconform.message import tell
from kvconform.oracle.reference import CitingReference, claims
from kvreports.safe_text import Html
from kvreports.site import addresses
from kvreports.site.content import Bug, Content, Drawn
from kvspec import SPEC_VERSION
from kvspec.errors import BadInput
from kvspec.notation import sentence
from kvspec.outside import read_bytes
from kvspec.own_folder import demand_own
from kvspec.reading.clauses import Clause, digest, index


def main(options: Namespace) -> int:
    """Write the site into a folder and return 0. Raises BadInput for what cannot be read or written."""
    try:
        from kvreports.site import build
    except ModuleNotFoundError as e:
        raise BadInput(f"a site needs {e.name}: python3 -m pip install 'kvconform[site]'") from None
    began, out = monotonic(), Path(options.out)
    demand_own(out, ("index.html", "404.html"), "index.html", "kvconform")
    records, address = [Path(r) for r in options.records], options.address or ""
    content = gathered(records, options.known, options.repository, address, options.older or "")
    count = _write(out, chain(build.files(content), _shown_elsewhere(content)))
    tell(f"{count} files in {monotonic() - began:.0f} s; begin with {out / 'index.html'}", "site")
    return 0


def gathered(
    records: Sequence[Path], known: Path | None, repository: Path | None, address: str = "", older: str = ""
) -> Content:
    """What the site shows. Raises BadInput."""
    shown = board(list(records), known, Path())  # first: what cannot be read is told before minutes of drawing
    texts = {} if repository is None else dict(_texts(repository, addresses.TEXTS))
    pictures = {} if repository is None else dict(_texts(repository, _pictures(repository)))
    return Content(
        version=SPEC_VERSION,
        digest=digest(),
        clauses=index(),
        examples={e.id: e for e in _examples(index().values())},
        board=shown,
        bugs=_bugs(),
        history={} if repository is None else history(repository),
        texts=texts,
        pictures={path: Html(text) for path, text in pictures.items()},
        address=address,
        older=older,
        preview=_preview(repository),
    )


def _examples(clauses: Iterable[Clause]) -> Iterator[Drawn]:
    """Every worked example, performed by the reference."""
    for chapter, group in groupby(clauses, key=lambda c: c.chapter):
        tell(f"drawing the examples of {chapter}", "site")
        for clause in group:
            for example in clause.examples:
                seen = trial.run(example.trace, CitingReference(), claims())
                drawn = steps.steps(seen, clause.seen_in)
                yield Drawn(example.id, example.trace.kind, sentence(example.trace), drawn)


def _bugs() -> dict[str, list[Bug]]:
    """The real bugs that are planted, by the clauses that they break."""
    found: dict[str, list[Bug]] = {}
    for mutant in known_bugs.real():
        for clause in mutant.clauses:
            found.setdefault(clause, []).append(Bug(mutant.id, mutant.says, mutant.link))
    return found


def _preview(repository: Path | None) -> bytes:
    path = (repository or Path()) / addresses.PREVIEW
    return read_bytes(path, "a picture") if repository and path.is_file() else b""


def _shown_elsewhere(content: Content) -> Iterator[tuple[str, bytes]]:
    """The picture of previews, which want a whole address."""
    if content.preview and content.address:
        yield "preview.png", content.preview


def _pictures(repository: Path) -> list[str]:
    shown = (repository / addresses.PICTURE, *sorted(repository.glob("spec/pictures/*.svg")))
    return [p.relative_to(repository).as_posix() for p in shown]


def _texts(repository: Path, paths: Sequence[str] | dict[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The texts of those files that are there."""
    for path in paths:
        if (repository / path).is_file():
            yield path, read_bytes(repository / path, "a page").decode("utf-8")


def _write(out: Path, files: Iterable[tuple[str, str | bytes]]) -> int:
    """Write all files and return how many there are."""
    count = 0
    for path, told in files:
        file = out / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(told if isinstance(told, bytes) else told.encode())
        except OSError as e:
            raise BadInput(f"{file}: cannot be written: {e.strerror}; name a folder that can be written") from None
        count += 1
    return count
