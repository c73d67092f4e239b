"""What a new user meets on the way to a server: each trouble is told plainly, with what to do, and what was found
until then is kept."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving import http, troubles
from kvconform import cli
from kvconform.commands import serving as serving_command
from kvreports import json_file
from kvspec.records.serving import ServingRecord

PROBE = Probe.of("qwen3", "full")
COMPLETIONS = "/v1/completions"


class Right(BaseHTTPRequestHandler):
    """Answers with the logits of the network in float64, and counts the requests."""

    models: ClassVar[tuple[str, ...]] = ("probe",)
    top: ClassVar[int] = PROBE.layout.vocabulary
    asked: ClassVar[int] = 0

    def do_GET(self) -> None:
        listed = {"data": [{"id": name} for name in self.models]}
        self._say(listed if self.path == "/v1/models" else {"error": "not found"}, self.path == "/v1/models")

    def do_POST(self) -> None:
        type(self).asked += 1
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._say(self._completed(asked), True)

    def _completed(self, asked: dict[str, Any]) -> dict[str, Any]:
        prompt, new = asked["prompt"], asked["max_tokens"]
        answer = [(prompt[-1] + 1 + i) % PROBE.layout.ids for i in range(new)]
        logits = np.asarray(engines.logits(PROBE, [*prompt, *answer[:-1]]))[-new:]
        tops = [{f"token_id:{i}": float(row[i]) for i in np.argsort(-row)[: self.top]} for row in logits]
        words = [f"token_id:{i}" for i in answer]
        logprobs = {"tokens": words, "top_logprobs": tops} if self.top else None
        return {"choices": [{"index": 0, "text": " ".join(f"t{i}" for i in answer), "logprobs": logprobs}]}

    def _say(self, content: Any, found: bool, status: int = 404) -> None:
        data = json.dumps(content).encode()
        self.send_response(200 if found else status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class NoLogprobs(Right):
    top = 0


class Few(Right):
    top = 5


class OtherModels(Right):
    models = ("llama-3", "qwen-3")


class Another(Right):
    """Has loaded another model."""

    def _completed(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"index": 0, "text": " Paris"}]}


class Chats(Right):
    """Has chats alone."""

    def do_POST(self) -> None:
        self._say({"detail": "Not Found"}, False)


class Elsewhere(Chats):
    """Has nothing at this address."""

    def do_GET(self) -> None:
        self._say({}, False)


class Locked(Right):
    """Wants a key, also for the list of its models."""

    def do_GET(self) -> None:
        self._say({}, False, 401)

    def do_POST(self) -> None:
        if self.headers.get("Authorization") == "Bearer sesame":
            super().do_POST()
        else:
            self._say({"error": "Unauthorized"}, False, 401)


class Hangs(Right):
    """Takes a request, and does not answer."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.connection.recv(1)


class Ends(Right):
    """Ends with its thirtieth request, in the middle of it."""

    def do_POST(self) -> None:
        if self.asked < 30:
            super().do_POST()
            return
        self.server.socket.close()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


@contextmanager
def served(kind: type[Right]) -> Iterator[str]:
    kind.asked = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        server.daemon_threads, server.block_on_close = True, False
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    into = tmp_path_factory.mktemp("troubled") / "probe"
    PROBE.write(into)
    return str(into)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_command, "PATIENCE", 0.5)
    monkeypatch.setattr(http, "TIMEOUT", 2.0)
    monkeypatch.delenv(troubles.KEY, raising=False)


def run(address: str, folder: str, *more: str) -> int:
    return cli.main(["run", "--server", address, "--model", folder, "--requests", "40", *more])


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        (NoLogprobs, 2, "it gives no logprobs, which do not tell what a query sees"),
        (NoLogprobs, 2, "write the probe with --output tokens"),
        (Few, 2, "the logprobs of 5 ids alone"),
        (Few, 2, "vLLM: --max-logprobs -1"),
        (OtherModels, 2, "it has the models llama-3, qwen-3, and none named"),
        (Another, 2, "'Paris', which this probe does not have; has it loaded the probe that --model names?"),
        (Chats, 2, "A server that has chats alone cannot be judged: its template adds"),
        (Elsewhere, 2, "it has no OpenAI API at this address: does it end with /v1?"),
        (Locked, 4, "it asks for a key (status 401): put it into the variable KVCONFORM_API_KEY"),
        (Hangs, 4, "it gave no answer within 2 s: it hangs, or is too slow"),
    ],
)
def test_what_is_wrong_with_a_server_is_said_at_once(
    folder: str, capsys: pytest.CaptureFixture[str], kind: type[Right], status: int, said: str
) -> None:
    with served(kind) as address:
        assert run(address, folder) == status
        told = capsys.readouterr().err
        assert said in told and address in told and "Traceback" not in told, told


def test_a_key_is_sent_and_a_wrong_one_is_said(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with served(Locked) as address:
        monkeypatch.setenv(troubles.KEY, "open")
        assert run(address, folder) == 4
        assert "is the key in KVCONFORM_API_KEY the right one?" in capsys.readouterr().err
        monkeypatch.setenv(troubles.KEY, "sesame")
        assert run(address, folder, "--report", str(tmp_path)) in (0, 3)
    assert Locked.asked > 40 and "sesame" not in (tmp_path / "record.json").read_text()


def test_nothing_is_wrong_with_the_right_one(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(Right) as address:
        assert run(address, folder) in (0, 3)
        assert "0 histories" in capsys.readouterr().out


def test_what_was_found_until_a_server_ended_is_kept(
    folder: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with served(Ends) as address:
        assert run(address, folder, "--report", str(tmp_path)) == 4
    said = capsys.readouterr()
    assert "it has ended" in said.err and "What was found until then is kept" in said.err, said.err
    assert "it went while this was asked: " in said.err
    record = json_file.load(tmp_path / "record.json", ServingRecord)
    assert record.partial and 15 < record.asked["requests"] < 30 and record.failures == []
    assert any("the engine was gone" in each for each in record.untold)
    assert {"PASS", "PARTLY_OBSERVED"} & {clause.verdict for clause in record.clauses}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ssl.SSLCertVerificationError(), "SSL_CERT_FILE"),
        (socket.gaierror(), "no machine of this name"),
        (ConnectionRefusedError(), "is it up?"),
        (ConnectionResetError(), "HTTP there, not HTTPS?"),
    ],
)
def test_what_stands_between_is_named(error: OSError, said: str) -> None:
    assert said in troubles.unreached(error, 1.0)


def test_a_server_without_tls_is_no_https(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(Right) as address:
        assert run(address.replace("http:", "https:"), folder) == 4
        assert "does its address begin with http://?" in capsys.readouterr().err


def test_a_probe_of_tokens_needs_no_logprobs() -> None:
    with served(NoLogprobs) as address:
        server = http.Server(address, "probe", Probe.of("qwen3", "full", "tokens"))
        assert server.declared.tells == "tokens"
