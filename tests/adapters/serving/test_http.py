"""What servers say of themselves and of their answers, each in its own words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest

from kvadapters.probe.checkpoint import Probe
from kvadapters.serving.driver import Request
from kvadapters.serving.http import Server
from kvadapters.serving.metrics import counted

PROBE = Probe.of("gemma3", "window 8,full")
IDS = PROBE.layout.vocabulary
METRICS = """\
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 1.5e+02
llamacpp:spec_decode_num_draft_tokens_total 9
llamacpp:spec_decode_num_accepted_tokens_total 4
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 4
"""


class LlamaServer(BaseHTTPRequestHandler):
    """Answers in the form of llama.cpp's server: all logprobs are those of a uniform choice."""

    def do_GET(self) -> None:
        models = {"data": [{"id": "model.gguf", "owned_by": "llamacpp"}]}
        texts = {"/v1/models": json.dumps(models), "/metrics": METRICS}
        self._send(texts.get(self.path, ""), 200 if self.path in texts else 404)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/text"):
            if not isinstance(asked["prompt"], str):
                self._send('{"error": "a text, please"}', 500)
                return
            asked["prompt"] = [int(word.removeprefix("t")) for word in asked["prompt"].split()]
        ids = [(asked["prompt"][-1] + 1 + i) % IDS for i in range(asked["max_tokens"])]
        top = [{"id": i, "token": "", "logprob": -float(np.log(IDS))} for i in range(asked["logprobs"])]
        rows = [{"id": i, "token": "?", "logprob": 0.0, "top_logprobs": top} for i in ids]
        choice = {"index": 0, "text": "?", "logprobs": {"content": rows}}
        usage = {"prompt_tokens_details": {"cached_tokens": 2}}
        said: dict[str, Any] = {"choices": [choice], "usage": usage, "system_fingerprint": "b7-abc"}
        self._send(json.dumps(said))

    def _send(self, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with ThreadingHTTPServer(("127.0.0.1", 0), LlamaServer) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        yield Server(f"http://127.0.0.1:{served.server_address[1]}/v1", "probe", PROBE)
        served.shutdown()


def test_a_server_is_known_by_its_models_and_its_answers(server: Server) -> None:
    assert (server.model, server.declared.name, server.declared.version) == ("model.gguf", "llamacpp", "b7-abc")
    assert server.declared.tells == "all" and {"cached", "cancel"} <= server.declared.can


def test_tokens_and_logprobs_are_found_by_their_ids(server: Server) -> None:
    answer = server.wait(server.submit(Request((3, 4, 5), new=2)))
    assert answer.cached == 2 and answer.samples[0].tokens == (6, 7)
    logprobs = answer.samples[0].answers
    assert isinstance(logprobs, np.ndarray) and logprobs.shape == (2, IDS)


def test_a_server_of_texts_is_asked_in_words(server: Server) -> None:
    texts = Server(server.parts.geturl().replace("/v1", "/text/v1"), "probe", PROBE)
    assert texts.wait(texts.submit(Request((3, 12), new=2))).samples[0].tokens == (13, 14)


def test_what_a_server_counts_is_found_under_its_own_name(server: Server) -> None:
    counts = {"cached tokens": 150, "drafts accepted": 4, "drafts rejected": 5}
    assert server.counts() == counts == counted(METRICS.replace("llamacpp:", "other:"), "")
    both = METRICS + 'vllm:prefix_cache_hits_total{engine="0"} 8\nvllm:prefix_cache_hits_total{engine="1"} 9\n'
    assert counted(both, "")["cached tokens"] == 17


class WordServer(LlamaServer):
    """Takes words alone, and answers in words, as mlx-lm's server does."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not isinstance(asked["prompt"], str) or "logprobs" in asked:
            return self._send("words, please", 400)
        last = int(asked["prompt"].split()[-1].removeprefix("t"))
        text = " ".join(f"t{last + 1 + i}" for i in range(asked["max_tokens"]))
        return self._send(json.dumps({"choices": [{"index": 0, "text": text}]}))


def test_a_server_that_takes_words_is_asked_in_words() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), WordServer) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        tokens = Probe.of("gemma3", "window 8,full", "tokens")
        server = Server(f"http://127.0.0.1:{served.server_address[1]}/v1", "probe", tokens)
        assert server.declared.tells == "tokens"
        assert server.wait(server.submit(Request((3, 4, 5), new=2))).samples[0].tokens == (6, 7)
        served.shutdown()


class Strict(LlamaServer):
    """Refuses what it does not know, or makes repeated tokens less likely unless told not to."""

    knows: ClassVar[bool] = False
    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(asked)
        if "repeat_penalty" in asked and not self.knows:
            self._send('{"error": "repeat_penalty is not known"}', 400)
        else:
            self._send(json.dumps({"choices": [{"index": 0, "text": "t3 " * asked["max_tokens"]}]}))


@pytest.mark.parametrize("knows", [True, False])
def test_a_server_that_makes_repeated_tokens_less_likely_is_told_not_to(
    monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    monkeypatch.setattr(Strict, "knows", knows)
    monkeypatch.setattr(Strict, "asked", [])
    probe = Probe.of("qwen3", "full", "tokens")
    with ThreadingHTTPServer(("127.0.0.1", 0), Strict) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        driver = Server(f"http://127.0.0.1:{server.server_address[1]}/v1", "m", probe)
        driver.wait(driver.submit(Request((0, 1, 2))))
        server.shutdown()
    assert Strict.asked[-1].get("repeat_penalty") == (1.0 if knows else None)
