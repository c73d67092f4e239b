"""Gives the mutants in frozen vectors and in the published matrix their ids without module paths; used once."""

from __future__ import annotations

import re
from pathlib import Path

from kvconform import output
from kvconform.mutants import kernels, matrix, systematic
from kvconform.vectors import files
from kvreports import matrixfile

LABELS = {target.module: label for label, target in systematic.TARGETS.items()}
LABELS |= {part.text: label for label, part in kernels.PARTS.items()}
PUBLISHED = Path(__file__).parent / "reports/published/mutants"


def id_(old: str) -> str:
    """`reference/ring.rewind: ...` of `kvref.ring.rewind: ...`."""
    if m := re.fullmatch(r"kernels\.([\w. ]+): (\w*): (.*)", old, re.DOTALL):
        return f"{'.'.join(filter(None, (LABELS[m[1]], m[2])))}: {m[3]}"
    m = re.fullmatch(r"(kvref\.\w+|kvadapters\.gpu\.\w+)\.(.*)", old, re.DOTALL)
    return f"{LABELS[m[1]]}.{m[2]}" if m else old


def says(old: str) -> str:
    """`line 3 of rewind in reference/ring: ...`."""
    m = re.fullmatch(r"(line \d+ of (?:\w+ in )?)(kv[\w.]+|\w+\.inc|row of \w+)(: .*)", old, re.DOTALL)
    return f"{m[1]}{LABELS[m[2]]}{m[3]}" if m else old


def message(old: str) -> str:
    """As `matrix.movable` makes it of what is compiled and shown today."""
    text = re.sub(r"\((kv[\w.]+ (?:again|changed)):(\d+)\)", r"(<\1>:\2)", old)
    return matrix.movable(re.sub(r"<kvadapters\.gpu\.runtime\.Block object at 0x[0-9a-f]+>", "<Block>", text))


def main() -> None:
    """Rewrite them all."""
    for file in files.there(files.FROZEN, ("mutants",)):
        document = files.read(file)
        for vector in document["vectors"]:
            notes = vector["notes"]
            notes["shows"] = message(notes["shows"])
            if "finds" in notes:
                notes["finds"] = [id_(i) for i in notes["finds"]]
        file.write_text(files.text(document), encoding="utf-8")
    record = matrixfile.load(PUBLISHED / "mutants.json")
    for m in record["mutants"]:
        m |= {"id": id_(m["id"]), "says": says(m["says"]), "message": message(m["message"])}
    output.write_matrix(record, PUBLISHED)


if __name__ == "__main__":
    main()
