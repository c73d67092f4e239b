"""The picture of the README: `python -m tools.demo_picture RECORD` draws the first failure of the demo's record.

`nox -s demo` runs the demo and then this.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kvreports import json_file
from kvreports.drawing.svg import draw_svg
from kvreports.run.findings import failures
from kvspec.records.run import Record

PICTURE = Path(__file__).parents[2] / "reports" / "published" / "demo.svg"


def picture(record: Record) -> str:
    """The trace that the report of a run shows first, drawn."""
    (failure, _), *_ = failures(record)
    return f"{draw_svg(failure.steps, f'The trace {failure.words}, drawn step by step')}\n"


def main(arguments: Sequence[str]) -> int:
    """Write the picture."""
    PICTURE.write_text(picture(json_file.load(Path(arguments[0]), Record)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
