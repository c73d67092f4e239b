"""`kvconform new-chapter NAME`: writes a chapter into a checkout. It holds as it stands, and its author changes
it."""

from __future__ import annotations

import keyword
import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import kvspec
import kvworkshop
from kvconform.message import tell
from kvreports import json_file
from kvspec.chapters import CHAPTERS
from kvspec.errors import BadInput
from kvspec.operations.table import OPERATIONS
from kvspec.registry import LETTERS, TENSORS, VALUES

SCAFFOLD = Path(kvworkshop.__file__).with_name("scaffold")
"""The files of a chapter, in the folders of a checkout; NAME, LETTERS and CLASS stand for its names."""

NAMES = "spec/kvspec/chapters/__init__.py"
"""The file with the names of all chapters: one line of it is new."""

NEXT = """\
wrote {count} files of {name}, and its name in {names}
next, in {tests}: python -m tools.freeze_vectors --write --chapter {name} && python -m tools.write_all
then: kvconform run reference --chapter {name} --quick
docs/guides/chapter.md tells what else a chapter has: costs, the caches on a device, workloads, attacks"""


def main(options: Namespace) -> int:
    """Write the files, and the line. Raises BadInput for a name that is taken, and where there is no checkout."""
    root = Path(options.into or Path(kvspec.__file__).parents[2])
    name, letters = options.name, options.letters or options.name.upper()
    demand_free(name, letters)
    if not (root / NAMES).is_file() or not (root / "tests").is_dir():
        raise BadInput(
            f"{root} is no checkout of kvconform: it lacks {NAMES} or tests; say where one is with --into"
        )
    texts = dict(files(root, name, letters))
    for target in texts:
        if target.exists():
            raise BadInput(f"{target} exists already; choose another name, or remove it")
    texts[root / NAMES] = _with_name(root / NAMES, name)
    for target, text in texts.items():
        json_file.write(target, text)
    tell(NEXT.format(count=len(texts) - 1, name=name, names=NAMES, tests=root / "tests"))
    return 0


def demand_free(name: str, letters: str) -> None:
    """Raise BadInput for a name or letters that no new chapter can have."""
    if not re.fullmatch(r"[a-z]{2,20}", name) or keyword.iskeyword(name):
        raise BadInput(f"{name!r} cannot name a chapter: use 2 to 20 small letters, and no word of Python")
    if name in (*CHAPTERS, *OPERATIONS, *VALUES, *TENSORS):
        raise BadInput(f"{name!r} is a chapter, an operation or an observation already; choose another name")
    if not re.fullmatch(r"[A-Z]{2,20}", letters):
        raise BadInput(f"{letters!r} cannot begin the ids of clauses: use 2 to 20 capital letters")
    if letters in LETTERS:
        raise BadInput(f"the clauses of {LETTERS[letters]} begin with {letters} already; say others with --letters")


def files(root: Path, name: str, letters: str) -> Iterator[tuple[Path, str]]:
    """Give the files of a chapter: where each goes, and its text."""
    for template in sorted(SCAFFOLD.rglob("*.txt")):
        target = root / template.relative_to(SCAFFOLD).with_suffix("")
        text = template.read_text(encoding="utf-8")
        for word, meant in (("NAME", name), ("LETTERS", letters), ("CLASS", name.capitalize())):
            text = text.replace(word, meant)
        yield target.with_name(target.name.replace("NAME", name)), text


def _with_name(names: Path, name: str) -> str:
    """Give the text of the file with the name behind those of the other chapters. Raises BadInput where it lists
    none."""
    before, end, after = names.read_text(encoding="utf-8").partition('",\n)\n')
    if not end:
        raise BadInput(f"{names} does not end a list of names with a line of its own; write the name there")
    return f'{before}",\n    "{name}{end}{after}'
