"""Files of vectors: a JSON document with one step a line, and a safetensors file of the tensors it names.

Only the documents are frozen: they name a tensor by its sha256, and it is recomputed when needed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from kvconform.generate.frozen_covers import FOLDER
from kvconform.vectors import SOURCES, safetensors
from kvconform.vectors.vector import LICENCE, VERSION, Written
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.outside import read_bytes, read_json

Document = dict[str, Any]

FROZEN = Path(str(FOLDER))
"""The folder of the frozen documents."""


def name(source: str, chapter: str) -> str:
    """Name the document of a source and a chapter."""
    return f"{source}-{chapter}.json"


def names(sources: Collection[str] = (), chapters: Collection[str] = ()) -> Iterator[str]:
    """Name the documents of these sources and chapters, or of all."""
    yield from (name(s, p) for s in sources or SOURCES for p in chapters or CHAPTERS)


def there(folder: Path, sources: Collection[str] = (), chapters: Collection[str] = ()) -> Iterator[Path]:
    """List the documents in a folder, of these sources and chapters, or of all."""
    yield from (folder / n for n in names(sources, chapters) if (folder / n).is_file())


def text(document: Document) -> str:
    """Write the text of a document: one step a line."""
    head = {name: value for name, value in document.items() if name != "vectors"}
    listed = ",\n".join(map(_vector, document["vectors"]))
    return json.dumps(head)[:-1] + ', "vectors": [\n' + listed + "\n]}\n"


def _vector(vector: dict[str, Any]) -> str:
    head = {name: value for name, value in vector.items() if name != "steps"}
    steps = ",\n  ".join(map(json.dumps, vector["steps"]))
    return " " + json.dumps(head)[:-1] + ', "steps": [\n  ' + steps + "\n ]}"


def write(made: Written, file: Path) -> None:
    """Write a document, and its tensors beside it. Raises OSError."""
    file.write_text(text(made.document), encoding="utf-8")
    write_tensors(made.tensors, file)


def write_tensors(named: Mapping[str, Array], file: Path) -> None:
    """Write tensors beside a document. Raises OSError."""
    about = {"licence": LICENCE, "of": file.name}
    file.with_suffix(".safetensors").write_bytes(safetensors.dumps(named, about))


def read(file: Path) -> Document:
    """Read a document. Raises BadInput that says what is wrong, and where."""
    data = read_bytes(file, "a file of vectors")
    try:
        document = read_json(data)
    except BadInput as e:
        raise BadInput(f"{file}: {e}") from None
    except json.JSONDecodeError as e:
        why = (
            "was it cut off?" if e.pos >= len(e.doc.rstrip()) - 1 else f"{e.msg}, line {e.lineno}, column {e.colno}"
        )
        raise BadInput(f"{file}: not complete JSON: {why}") from None
    except (UnicodeDecodeError, RecursionError) as e:
        raise BadInput(f"{file}: not JSON ({e!s:.100})") from None
    if not isinstance(document, dict) or document.get("kvvectors") != VERSION:
        raise BadInput(f"{file}: not vectors of version {VERSION}")
    missing = [n for n in ("source", "chapter", "counts", "vectors") if n not in document]
    if missing or not isinstance(document["vectors"], list) or not isinstance(document["counts"], dict):
        said = f"no {', '.join(missing)}" if missing else "counts is no object, or vectors no list"
        raise BadInput(f"{file}: not vectors: {said}")
    return document


def read_tensors(file: Path) -> dict[str, Array]:
    """Read the tensors beside a document. Raises BadInput."""
    beside = file.with_suffix(".safetensors")
    return safetensors.loads(read_bytes(beside, "a file of vectors"), str(beside))
