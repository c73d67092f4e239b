"""Exports a folder of vectors that an engine's own tests can replay without this project, and verifies it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kvconform.vectors import files, verify
from kvconform.vectors.exported import exported, tensors
from kvconform.vectors.vector import LICENCE, VERSION, Written
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.operations.table import OPERATIONS
from kvspec.outside import read_bytes, read_json
from kvspec.own_folder import demand_own
from kvspec.reading import clauses

INDEX = "index.json"
SCHEMAS = {"schema.json": "vectors.json", "trace.schema.json": "trace.json"}
HASHED = ("README.md", "LICENSE", *SCHEMAS, "clauses.json")
"""Files beside the vectors; the index holds their hashes."""


def export(
    folder: Path,
    chosen: Collection[str] = (),
    chapters: Collection[str] = (),
    verified: bool = False,
    progress: Callable[[Path, int], None] = lambda file, files: None,
) -> dict[str, Any]:
    """Write the frozen vectors of these sources and chapters, or all, with their tensors; give the index.

    With `verified` all that is frozen is first compared with the reference; tensors always are. `progress` is told
    each file before it is written, and how many there are. Raises BadInput if the reference differs from them, or
    the folder cannot be written; an earlier export there is then as it was.
    """
    found = list(files.there(files.FROZEN, chosen, chapters))
    if not found:
        raise BadInput("no vectors are frozen for these sources and chapters")
    demand_own(folder, ("README.md", "LICENSE", INDEX), INDEX, '"kvvectors"')
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=folder) as beside:
            index = _written(found, Path(beside), verified, progress)
            for name in sorted(os.listdir(beside), key=INDEX.__eq__):  # the index last: it vouches for the others
                os.replace(Path(beside, name), folder / name)
    except OSError as e:
        raise BadInput(f"{e.filename or folder}: cannot be written: {e.strerror or e}") from None
    return index


def _written(
    found: list[Path], folder: Path, verified: bool, progress: Callable[[Path, int], None]
) -> dict[str, Any]:
    """Write all files; give the index."""
    listed = []
    for file in found:
        progress(file, len(found))
        listed.append(_file(file, folder, verified))
    index = _index(listed)
    _beside(folder, index)
    return index


def _file(file: Path, folder: Path, verified: bool) -> dict[str, Any]:
    """Write one document with its tensors; give its counts."""
    for wrong in verify.differences(file, with_tensors=False) if verified else ():
        raise BadInput(f"the reference does not do what a frozen vector says: {wrong}")
    frozen, named = files.read(file), dict[str, Array]()
    for each in frozen["vectors"]:
        try:
            named |= tensors(each)
        except BadInput as e:
            raise BadInput(f"the reference does not do what a frozen vector says: {file.name}: {e}") from None
    document = {**frozen, "vectors": [exported(each) for each in frozen["vectors"]]}
    files.write(Written(document, named), folder / file.name)
    return {"file": file.name, **frozen["counts"]}


def _index(listed: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"kvvectors": VERSION, "licence": LICENCE, "spec": clauses.digest()}
    return {**head, "counts": _total(listed), "files": listed}


def _total(listed: list[dict[str, Any]]) -> dict[str, int]:
    total = Counter[str]()
    for each in listed:
        total.update(_without_file(each))
    return dict(total)


def _beside(folder: Path, index: dict[str, Any]) -> None:
    """Write the other files of the folder; the index gets their hashes."""
    counts = ", ".join(f"{count} {what}" for what, count in index["counts"].items())
    filled = {"@counts@": counts, "@spec@": index["spec"], "@operations@": _operations()}
    readme = resources.files("kvconform").joinpath("templates", "vectors", "README.md.txt").read_text("utf-8")
    for mark, text in filled.items():
        readme = readme.replace(mark, text)
    spec = resources.files("kvspec")
    texts = {"README.md": readme, "LICENSE": files.FROZEN.joinpath("LICENSE").read_text("utf-8")}
    texts |= {name: spec.joinpath("schemas", of).read_text("utf-8") for name, of in SCHEMAS.items()}
    texts |= {"clauses.json": _json(_clauses())}
    index["sha256"] = {name: _sha256(text.encode()) for name, text in texts.items()}
    for name, text in (texts | {INDEX: _json(index)}).items():
        (folder / name).write_bytes(text.encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(document: Any) -> str:
    return json.dumps(document, indent=1) + "\n"


def _clauses() -> dict[str, dict[str, str]]:
    return {c.id: {"level": c.level, "text": c.text} for c in clauses.index().values()}


def _operations() -> str:
    """Write a Markdown table of every operation, its arguments and what it does."""
    rows = ["| operation | arguments | what it does |", "|---|---|---|"]
    for name, operation in OPERATIONS.items():
        listed = " ".join(a.name if a.required else f"[{a.name}]" for a in operation.arguments)
        rows.append(f"| `{name}` | {listed} | {operation.says} |")
    return "\n".join(rows)


def index_of(folder: Path) -> dict[str, Any]:
    """Read the index of an exported folder. Raises BadInput."""
    text = read_bytes(folder / INDEX, "the index of a folder of vectors")
    try:
        index = read_json(text)
        listed = [str(entry["file"]) for entry in index["files"] if _total([entry])]
        listed += [str(name) for name in dict(index["sha256"])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise BadInput(f"{folder / INDEX}: not the index of a folder of vectors ({e!s:.100})") from None
    odd = [name for name in listed if Path(name).name != name]
    if odd:
        raise BadInput(f"{folder / INDEX}: {odd[0]!r} is not the name of a file in that folder")
    return dict(index)


def differences(folder: Path, index: dict[str, Any], chosen: Collection[str]) -> Iterator[str]:
    """Compare these files of an exported folder with the reference; give the differences. Raises BadInput for
    unreadable files."""
    if index.get("counts") != _total(index["files"]):
        yield f"{INDEX}: counts {index.get('counts')}, and its files come to {_total(index['files'])}"
    yield from _changed(folder, index["sha256"])
    for entry in (entry for entry in index["files"] if entry["file"] in chosen):
        file = folder / entry["file"]
        said = files.read(file)["counts"]
        if {"file": file.name, **said} != entry:
            yield f"{INDEX} says that {file.name} holds {_without_file(entry)}; its header says {said}"
        yield from verify.differences(file, with_tensors=True)


def _changed(folder: Path, hashes: dict[str, str]) -> Iterator[str]:
    """Name the files beside the vectors that are not as they were exported, and those that the index leaves out."""
    yield from (f"{INDEX}: no hash of {name}" for name in HASHED if name not in hashes)
    for name, said in hashes.items():
        found = _sha256(read_bytes(folder / name, "a file beside vectors"))
        if found != said:
            yield f"{name}: not as it was exported: its sha256 is {found}; the index says {said}"


def _without_file(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: count for name, count in entry.items() if name != "file"}
