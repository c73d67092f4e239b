"""The transcript in `spec/WIRE.md`: a short trace over the wire, its headers as they are sent.

`python -m tools.wire_transcript` writes it again. A ring of the reference answers; it claims ring and mask alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvadapters.reference import Reference
from kvadapters.serve import Server
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.worker.remote_session import RemoteSession
from kvref.caches.ring import Ring
from kvspec import notation
from kvspec.wire import framing

BEGIN, END = "<!-- begin: python -m tools.wire_transcript -->", "<!-- end -->"
PAGE = Path(__file__).parents[2] / "spec" / "WIRE.md"

TRACE = (
    "ring kv_heads=1 k_dim=4 v_dim=3 window=2: append 2; append 1; view; ask 2; rewind 2; mask window=1; "
    "append 1 k_dim=5; open B kind=store layers=1 max_len=4; B: append 1; free"
)


class Engine(Reference):
    """A ring of the reference, by another name."""

    caches = {"ring": Ring}  # noqa: RUF012

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "my-engine", "chapters": {"ring": {"level": "storage", "grows": "step"}, "mask": "storage"}}


class Recorder:
    """A worker in this process that keeps the headers of all messages."""

    def __init__(self) -> None:
        self.server, self.lines = Server(f"{__name__}:Engine"), list[str]()
        self._asked = 0
        self._answer: Any = None

    def send(self, head: dict[str, Any], tensors: framing.Tensors | None = None) -> None:
        """Ask one question."""
        self._asked += 1
        question = framing.encode({"id": self._asked, **head}, tensors)
        ((heard, arrays),) = framing.Decoder().feed(question)
        answer = self.server.answer(heard, arrays)
        self.lines += [f"> {_header(question)}", f"< {_header(answer)}"]
        ((self._answer),) = framing.Decoder().feed(answer)

    def receive(self) -> Any:
        """Give the answer."""
        head, arrays = self._answer
        return {name: value for name, value in head.items() if name != "id"}, arrays


def _header(message: bytes) -> str:
    line, _, tensors = message.partition(b"\n")
    return line.decode() + (f"   + {len(tensors)} bytes" if tensors else "")


def transcript() -> Iterator[str]:
    """Give the lines: each question, and its answer."""
    recorder: Any = Recorder()
    recorder.send({"op": "describe", "protocol": framing.PROTOCOL})
    trace = notation.from_sentence(TRACE)
    session, trace_inputs = RemoteSession(recorder, ("history", "state", "mask")), TraceInputs(trace)
    session.begin(trace.kind, trace.config)
    for op in trace.ops:
        step = session.do(op, trace_inputs.make(op))
        trace_inputs.done(op, step.result)
    yield from recorder.lines


def written(text: str) -> str:
    """The page with its transcript made again. Raises ValueError where it has no marks."""
    before, behind = text.index(BEGIN), text.index(END)
    lines = "\n".join(f"    {line}" for line in transcript())
    return f"{text[:before]}{BEGIN}\n\n{lines}\n\n{text[behind:]}"


def main(arguments: Sequence[str]) -> int:
    """Write the transcript into the page, or into the one named."""
    page = Path(arguments[0]) if arguments else PAGE
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
