"""What the tools write, read: each report with the kind of bug, the kernel, and the line of the program text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

DIFFERENCE = "difference from the reference"
DIVERGENCE = "barrier divergence"
REFUSAL = "what no GPU does"


@dataclass(frozen=True)
class Report:
    """A bug that was found. `line` counts the lines of the whole program text; 0 where no kernel stood there."""

    kind: str
    kernel: str = ""
    line: int = 0
    detail: str = ""

    def to_json(self) -> str:
        """One line of text."""
        return json.dumps(asdict(self))

    def named(self, text: str) -> str:
        """The bug in words, with the line of the program it is in."""
        lines = text.splitlines()
        shown = f": {lines[self.line - 1].strip()}" if 0 < self.line <= len(lines) else ""
        where = f" in {self.kernel}, line {self.line}{shown}" if self.kernel else ""
        return f"{self.kind}{where}{f' ({self.detail})' if self.detail else ''}"


def from_json(line: str) -> Report:
    """The report that `to_json` wrote."""
    return Report(**json.loads(line))


def refused(message: str, kernel: str) -> Report:
    """What a launch ended with."""
    return Report(DIVERGENCE if DIVERGENCE in message else REFUSAL, kernel, detail=message)


def _frame(text: str) -> tuple[str, int]:
    """Kernel and line of the innermost frame that is in the program."""
    found = re.search(r"^ *#\d+ (?:0x\w+ in )?(?:void )?(\w+).*?kernels\.cu:(\d+)", text, re.M)
    return (found[1], int(found[2])) if found else ("", 0)


def asan(log: str) -> Iterator[Report]:
    """The errors in a log of AddressSanitizer."""
    for text in re.split(r"^(?==+\d*=*ERROR: AddressSanitizer)", log, flags=re.M):
        error = re.search(r"ERROR: AddressSanitizer:? ([\w-]+)", text)
        if error:
            yield Report(_asan_kind(error[1], text), *_frame(text))


def _asan_kind(error: str, text: str) -> str:
    access = re.search(r"^(READ|WRITE) of size", text, re.M)
    did = access[1].lower() if access else "access"
    if error == "heap-use-after-free":
        return f"{did} after release"
    if error == "global-buffer-overflow":
        return f"{did} outside shared memory"
    if error == "heap-buffer-overflow":
        before = re.search(r"is located \d+ bytes (to the left of|before)", text)
        return f"{did} before the beginning" if before else f"{did} past the end"
    return error


def tsan(log: str) -> Iterator[Report]:
    """The races in a log of ThreadSanitizer; the shim tells it which thread of which block everybody is."""
    for text in log.split("WARNING: ThreadSanitizer: ")[1:]:
        first, second = (re.findall(r"'(thread [\d,]+) of (block [\d,]+)'", text) * 2 + [("", "")] * 2)[:2]
        if not text.startswith("data race"):
            yield Report(text.splitlines()[0].split(" (pid")[0], *_frame(text))
        elif first[1] == second[1]:
            yield Report("race within a block", *_frame(text), detail=f"{first[0]} and {second[0]} of {first[1]}")
        else:
            yield Report("race between blocks", *_frame(text), detail=f"{first[1]} and {second[1]}")


def oclgrind(log: str) -> Iterator[Report]:
    """The errors in a log of Oclgrind. They begin at the margin; what belongs to them is indented."""
    for text in re.split(r"^(?=\S)", log, flags=re.M):
        if not text.strip():
            continue
        kernel, line = re.search(r"Kernel:\s+(\w+)", text), re.search(r"At line (\d+)", text)
        place = (kernel[1] if kernel else "", int(line[1]) if line else 0)
        yield Report(_oclgrind_kind(text), *place)


def _oclgrind_kind(text: str) -> str:
    head = text.splitlines()[0]
    if found := re.match(r"Invalid (read|write) of size \d+ at (\w+)", head):
        return f"{found[1]} outside {found[2]} memory"
    if found := re.search(r"data race at (\w+) memory", head):
        first, second = (re.findall(r"Group\(([\d,]+)\)", text) * 2 + ["", ""])[:2]
        return f"race {'within a group' if first == second else 'between groups'} in {found[1]} memory"
    if "divergence" in head:
        return DIVERGENCE
    return "uninitialised value" if "ninitialized" in head else head
