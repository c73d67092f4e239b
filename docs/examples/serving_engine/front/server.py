"""Serves an engine by HTTP as OpenAI's completions. Requests that come together are computed together."""

from __future__ import annotations

import json
import select
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread
from typing import Any

from serving_engine.engine import Engine
from serving_engine.front.completions import Completion, Dialogue
from serving_engine.sequence import Output

LARGEST = 1 << 20
"""Bytes of a request."""
LOOK = 0.05
"""Seconds after which it is seen whether a client is still there."""

Reply = Queue[Output | Exception]


class Desk:
    """Runs the engine in one thread. The threads of clients hand in what it is to do between steps."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.orders: Queue[Callable[[], None]] = Queue()
        self.replies: dict[int, Reply] = {}
        Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Step as long as there is work; wait for orders while there is none."""
        while True:
            if not self.engine.busy():
                self.orders.get()()
            while not self.orders.empty():
                self.orders.get()()
            try:
                for output in self.engine.step():
                    self.replies[output.id].put(output)
            except Exception as e:  # whatever is wrong with the engine, nobody waits for it for ever
                self.fail(e)

    def fail(self, error: Exception) -> None:
        """Tell all clients that the engine failed, and drop their requests."""
        for sequence in self.engine.scheduler.all():
            self.engine.scheduler.remove(sequence)
        for reply in self.replies.values():
            reply.put(RuntimeError(f"the engine failed: {error!r}"))

    def add(self, asked: Completion, reply: Reply, told: Queue[int]) -> None:
        """Add a request to the engine, and tell its id. What the engine refuses is the reply."""
        try:
            number = self.engine.add(asked.tokens, **asked.options)
        except ValueError as e:
            reply.put(e)
            return
        self.replies[number] = reply
        told.put(number)

    def leave(self, told: Queue[int]) -> None:
        """Forget a request, if it was added; abort it, if it has not ended."""
        if not told.empty():
            number = told.get()
            del self.replies[number]
            with suppress(KeyError):
                self.engine.abort(number)

    def answer(self, asked: Completion, gone: Callable[[], bool]) -> list[Output]:
        """Wait for all samples of a request; give none if the client has `gone`, which aborts it. Raises ValueError
        for what the engine refuses, RuntimeError if it failed."""
        reply, told = Reply(), Queue[int]()
        self.orders.put(lambda: self.add(asked, reply, told))
        try:
            return self.wait(reply, asked.options["samples"], gone)
        finally:
            self.orders.put(lambda: self.leave(told))

    def wait(self, reply: Reply, samples: int, gone: Callable[[], bool]) -> list[Output]:
        """Wait for so many outputs, or for the client to go."""
        outputs = list[Output]()
        while len(outputs) < samples:
            try:
                given = reply.get(timeout=LOOK)
            except Empty:
                if gone():
                    return []
                continue
            if isinstance(given, Exception):
                raise given
            outputs.append(given)
        return outputs


class Handler(BaseHTTPRequestHandler):
    """Answers one client."""

    protocol_version = "HTTP/1.1"
    desk: Desk
    dialogue: Dialogue

    def do_GET(self) -> None:
        """Say that the server is there, which model it has, or what it has counted."""
        models = {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "owned_by": "serving_engine"} for name in self.dialogue.models
            ],
        }
        pages = {"/health": {}, "/v1/models": models, "/counts": self.desk.engine.counts()}
        if self.path in pages:
            self.say(200, pages[self.path])
        else:
            self.say(404, _error(f"there is no {self.path}; there are {', '.join(pages)}"))

    def do_POST(self) -> None:
        """Complete a prompt."""
        size = int(self.headers.get("Content-Length") or 0)
        if self.path != "/v1/completions" or not 0 < size <= LARGEST:
            self.close_connection = True
            self.say(400, _error(f"/v1/completions takes a request of 1 to {LARGEST} bytes"))
            return
        try:
            asked = self.dialogue.read(json.loads(self.rfile.read(size)))
            outputs = self.desk.answer(asked, self.gone)
        except (ValueError, TypeError, AttributeError) as e:
            self.say(400, _error(str(e)))
            return
        except RuntimeError as e:
            self.say(500, _error(str(e)))
            return
        if outputs:
            with suppress(ConnectionError):  # the client has hung up meanwhile
                self.say(200, self.dialogue.write(asked, outputs))

    def gone(self) -> bool:
        """Say whether the client has closed the connection, or reset it."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            return True

    def say(self, status: int, content: Any) -> None:
        """Send JSON."""
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


class Server(ThreadingHTTPServer):
    """A thread for each client."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has hung up; print what else went wrong."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(engine: Engine, dialogue: Dialogue, host: str, port: int) -> Server:
    """Open a server; port 0 takes a free one. The caller lets it run by `serve_forever`."""
    handler = type("Handler", (Handler,), {"desk": Desk(engine), "dialogue": dialogue})
    return Server((host, port), handler)
