"""The worker: puts a Python adapter on the wire. `python -m kvadapters.serve NAME`; see `kvspec.wire.framing`.

Only the protocol uses standard input and output: both are moved out of the adapter's reach before it is imported.
What the adapter prints goes to standard error, and its standard input is at end of file.
"""

from __future__ import annotations

import faulthandler
import io
import os
import sys
from functools import cached_property
from typing import Any

from kvadapters.find import guarded, load
from kvspec.chapters.record import LARGEST
from kvspec.contract import CHAPTERS, Adapter, Description, Pair, description
from kvspec.errors import BadInput, CannotRun, Unsupported
from kvspec.geometry import FIELDS, SIZES, Array, Config
from kvspec.masks import Explicit
from kvspec.operations.abilities import needed
from kvspec.operations.table import RUN, TAKES_QUERIES, TAKES_ROWS, Operation, cache_of, chapters_of
from kvspec.registry import OBSERVABLES
from kvspec.session.driver import Session
from kvspec.session.step import Inputs, Listed, Step
from kvspec.trace import check_operation
from kvspec.wire import framing, messages

BUFFER = 1 << 18
"""Bytes read at a time: a message with 64 KiB of keys and of values in one go."""

ALL = "--all"
"""The option that shows what an adapter has and does not claim, to propose a claim on it."""

USAGE = f"usage: python -m kvadapters.serve [{ALL}] NAME; NAME is a built-in, an entry point or module:Class"


class ClaimedSession(Session):
    """A session on an adapter that hides what the adapter has and does not claim."""

    def __init__(self, adapter: Any, observe: tuple[str, ...], claims: Description) -> None:
        super().__init__(adapter, observe, claims)
        self.claims = claims

    def demand(self, op: Operation, inputs: Inputs) -> None:
        """Raise Unsupported for an operation that is not claimed on its cache."""
        if op["op"] == "open" and inputs.opening is not None:
            kind, config = inputs.opening
        elif cache_of(op) in self.kinds:
            kind, config = self.kinds[cache_of(op)], self.configs[cache_of(op)]
        else:
            return
        op = _with_sorts(op, inputs)
        chapters = {kind, *chapters_of(op)} - set(self.claims.chapters)
        if missing := sorted(chapters) or self.claims.lacks(needed(op, kind, config)):
            raise Unsupported(f"{self.claims.name} does not claim {', '.join(missing)}")


def _with_sorts(op: Operation, inputs: Inputs) -> Operation:
    """Give a mask of the wire with the dtypes of its explicit parts, which stand in its tensors."""
    if op["op"] != "mask" or inputs.logical is None:
        return op
    arrays = (part.array for part in inputs.logical if isinstance(part, Explicit))
    dtypes = ({"dtype": "bool" if array.dtype == bool else "f32"} for array in arrays)
    return {**op, "parts": [next(dtypes) if isinstance(p, dict) and "tensor" in p else p for p in op["parts"]]}


class Server:
    """Answers questions about one adapter; a question that fails is answered too. What the adapter does not claim
    is hidden, because its class may have more than this engine; with `all` it is not."""

    def __init__(self, name: str, all: bool = False) -> None:
        self.name, self.all = name, all
        self.failed: dict[str, str] = {}
        self.adapter: Adapter | None = None
        try:
            self.adapter = load(name)
        except (BadInput, CannotRun) as e:
            self.failed = _failure(e)
        self.session = Session(self.adapter)

    def answer(self, head: dict[str, Any], tensors: framing.Tensors) -> bytes:
        """Answer one question, as bytes."""
        asked = head.pop("id", None)
        question = asked if type(asked) is int else None
        try:
            if question is None:
                raise BadInput(f"a question needs an id, a whole number, not {asked!r:.40}")
            if head.get("op") == "describe":
                return framing.encode({"id": question, **self._describe(head)})
            return messages.answer(question, self._perform(head, tensors))
        except Exception as e:
            return framing.encode({"id": question, **_failure(e)})

    def _describe(self, head: dict[str, Any]) -> dict[str, Any]:
        if head.get("protocol") != framing.PROTOCOL:
            raise BadInput(f"protocol {head.get('protocol')!r:.40} was asked for; this is {framing.PROTOCOL}")
        if self.adapter is None:
            return self.failed
        said = guarded(self.name, "describe fails", self.adapter.describe)
        try:
            return {"result": "ok", "describe": description(said).to_json(), "takes": [RUN.name, "scribble"]}
        except BadInput as e:
            raise BadInput(f"{self.name}: {e}") from e

    def _perform(self, head: dict[str, Any], tensors: framing.Tensors) -> Step:
        if self.adapter is None:
            return Step("error", message=self.failed["message"])
        match head.get("op"):
            case "begin":
                return self._begin(head)
            case RUN.name:
                return self._run(head, tensors)
        return self.session.do(*_question(head, tensors))

    def _run(self, head: dict[str, Any], tensors: framing.Tensors) -> Step:
        each = [_question(*part) for part in messages.parts(head, tensors)]
        ops = [op for op, _ in each]
        return self.session.do({"op": RUN.name, "times": 1, "ops": ops}, Inputs(each=Listed(i for _, i in each)))

    def _begin(self, head: dict[str, Any]) -> Step:
        observe, opening = _observe(head.pop("observe", None)), _opening(head)
        _nothing_else(head)
        if self._hidden is not None:
            self.session = ClaimedSession(self.adapter, observe, self._hidden)
        else:
            self.session = Session(self.adapter, observe, self._said)
        return self.session.begin(*opening)

    @cached_property
    def _hidden(self) -> Description | None:
        """What the adapter claims, if the rest is hidden; None where nothing is left to hide."""
        whole = self._said is None or (self._said.complete and set(self._said.chapters) == set(CHAPTERS))
        return None if whole or self.all else self._said

    @cached_property
    def _said(self) -> Description | None:
        """How the adapter describes itself; None where it cannot."""
        assert self.adapter is not None
        try:
            return description(self.adapter.describe())
        except Exception:  # the question `describe` is answered by it
            return None


def _question(head: dict[str, Any], tensors: framing.Tensors) -> tuple[Operation, Inputs]:
    """Read the question of one operation, and what it takes. Raises BadInput."""
    match head.get("op"):
        case "open" | "init" | "fit":
            return _to_open(head)
        case "mask":
            parts = messages.without_tensors(head.get("parts"), tensors)
            check_operation({**head, "parts": []}, "question")
            return head, Inputs(logical=parts)
    logical = messages.without_tensors(head.pop("through"), tensors) if "through" in head else None
    check_operation(head, "question")
    rows = _rows(tensors) if head["op"] in TAKES_ROWS else None
    queries = _queries(tensors) if head["op"] in TAKES_QUERIES else None
    return head, Inputs(rows, queries, logical)


def _to_open(head: dict[str, Any]) -> tuple[Operation, Inputs]:
    """Read the opening of another cache, or an operation that takes its geometry from a config."""
    opening = _opening(head)
    check_operation(head, "question")
    twice = sorted(set(FIELDS) & set(head))
    if twice or (head["op"] == "open" and "cache" not in head):
        wrong = f"not {', '.join(twice)}" if twice else "no cache is named"
        raise BadInput(f"{head['op']} has its sizes in its config, and open names a cache: {wrong}")
    return head, Inputs(opening=opening)


def _failure(e: Exception) -> dict[str, str]:
    """Turn an exception into an answer's result and message."""
    own = isinstance(e, BadInput | CannotRun)
    message = str(e) if own else f"{type(e).__name__}: {e}"
    return {
        "result": "cannot_run" if isinstance(e, CannotRun) else "error",
        "message": " ".join(message.split())[: messages.LONGEST_MESSAGE],
    }


def _observe(wanted: Any) -> tuple[str, ...]:
    if wanted is None:
        return OBSERVABLES
    if not isinstance(wanted, list) or not all(w in OBSERVABLES for w in wanted):
        raise BadInput(f"observe must list some of {', '.join(OBSERVABLES)}, is {wanted!r:.60}")
    return tuple(wanted)


def _opening(head: dict[str, Any]) -> tuple[str, Config]:
    """Read kind and config from the header. The adapter must refuse sizes that no cache may have."""
    kind, fields = head.pop("kind", None), head.pop("config", None)
    if not isinstance(kind, str) or not isinstance(fields, dict):
        raise BadInput(f"{head['op']} needs a kind and a config: {head!r:.80}")
    for name, value in fields.items():
        if name not in FIELDS:
            raise BadInput(f"config: unknown field {name!r:.40}; known: {', '.join(FIELDS)}")
        if name not in SIZES and not isinstance(value, str):
            raise BadInput(f"config: {name} must be a text, is {value!r:.40}")
        if name in SIZES and not (type(value) is int and abs(value) <= LARGEST):
            raise BadInput(f"config: {name} must be a whole number, is {value!r:.40}")
    return kind, Config(**fields)


def _nothing_else(head: dict[str, Any]) -> None:
    if set(head) != {"op"}:
        raise BadInput(f"{head['op']} takes a kind, a config and observe, nothing else: {head!r:.80}")


def _rows(tensors: framing.Tensors) -> Pair:
    keys, values = tensors.get("keys"), tensors.get("values")
    if keys is None or values is None:
        raise BadInput("an operation that writes rows needs two tensors, keys and values")
    return Pair(keys, values)


def _queries(tensors: framing.Tensors) -> Array:
    queries = tensors.get("queries")
    if queries is None:
        raise BadInput("an operation that attends needs a tensor queries")
    return queries


def _private_pipes() -> tuple[int, int]:
    """Move standard input and output to other descriptors; the adapter gets /dev/null and standard error."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    return questions, answers


def _serve(server: Server, questions: int, answers: int) -> int:
    decoder = framing.Decoder()
    while data := os.read(questions, BUFFER):
        try:
            for head, tensors in decoder.feed(data):
                _write(answers, server.answer(head, tensors))
        except framing.ProtocolError as e:
            _write(answers, framing.encode({"id": None, "result": "error", "message": f"not a question: {e}"}))
            return 2
    return 0


def _write(pipe: int, data: bytes) -> None:
    written = os.write(pipe, data)
    while written < len(data):
        written += os.write(pipe, memoryview(data)[written:])


def main() -> int:
    """Serve the adapter named on the command line until the questions end."""
    names = [a for a in sys.argv[1:] if a not in ("--", ALL)]
    if len(names) != 1:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        questions, answers = _private_pipes()
        faulthandler.enable()  # a crash in native code leaves its place on standard error
        return _serve(Server(names[0], ALL in sys.argv[1:]), questions, answers)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
