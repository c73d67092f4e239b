"""Servers that speak OpenAI's completions over HTTP: vLLM, llama.cpp, the serving engine of the examples, others.

A request is sent by `submit` and its answer read by `wait`, so that many are under way without a thread. Where a
server needs other words than the usual ones, it says so in a refusal, and the next form is tried once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import product
from typing import Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.serving import http_adapters, troubles
from kvadapters.serving.driver import Answer, Declared, Driver, EngineFailed, Gone, Request, Sample
from kvadapters.serving.metrics import counted, sizes
from kvspec.errors import BadInput, CannotRun, Refused

TIMEOUT = 120.0
"""Seconds that a server may be silent."""
LARGEST = 1 << 28
"""Bytes of an answer that are read."""


def starting(address: str) -> str:
    """Say why a server cannot be asked yet: nobody listens, or it loads its model. Empty, if neither is so. Raises
    BadInput for what is no address."""
    parts = _parts(address)
    connection = _connection(parts)
    try:
        connection.request("GET", f"{parts.path}/models", headers=_headers())
        return "it answers with status 503" if connection.getresponse().status == 503 else ""
    except ConnectionRefusedError:
        return "nobody listens there yet"
    except (OSError, HTTPException):
        return ""
    finally:
        connection.close()


def _parts(address: str) -> SplitResult:
    """Read an address. Raises BadInput."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{address!r} is no address of a server, such as http://127.0.0.1:8000/v1")
    return parts


def _connection(parts: SplitResult) -> HTTPConnection:
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=TIMEOUT)


class _Hangs(EngineFailed):
    """No answer came in time."""


class Server(Driver):
    """A server at an address that ends with /v1. `known` adds what the server does not say of itself."""

    def __init__(self, address: str, model: str, probe: Probe, known: str = "") -> None:
        self.parts, self.model, self.probe = _parts(address), model, probe
        self.words = list(probe.layout.words())
        self.ids = {name: i for i, word in enumerate(self.words) for name in (word, str(i), f"token_id:{i}")}
        self.in_words = False
        self.logprobs = _forms(probe)
        self.samples: dict[str, float] = {}
        self.models, self.fingerprint, self.last = list[str](), "", dict[str, int]()
        self.named: http_adapters.Fields = {}
        self.declared = Declared(address).with_words(known)
        self._meet(known)

    def submit(self, request: Request) -> Any:
        """Send a request. Raises Gone."""
        connection = self._connected()
        body = {
            "model": self.model,
            "prompt": " ".join(self.words[t] for t in request.tokens) if self.in_words else list(request.tokens),
            "max_tokens": request.new,
            "temperature": 0.0,
            **self.logprobs[0],
            **({"n": request.samples, **self.samples} if request.samples > 1 else {}),
            **({"cache_salt": request.salt} if request.salt else {}),
            **({"logit_bias": {str(t): b for t, b in request.bias.items()}} if request.bias else {}),
            **({} if request.stop is None else {"stop_token_ids": [request.stop]}),
            **self.named.get(request.adapter, {}),
        }
        try:
            connection.request("POST", f"{self.parts.path}/completions", json.dumps(body), _headers())
        except (OSError, HTTPException) as e:
            raise Gone(self._said(troubles.unreached(e, TIMEOUT))) from None
        return connection

    def wait(self, handle: Any) -> Answer:
        """Read the answer to a request. Raises Gone where it does not come and nobody listens any more."""
        try:
            response: HTTPResponse = handle.getresponse()
            data = response.read(LARGEST)
        except (OSError, HTTPException) as e:
            raise self._silent(e) from None
        finally:
            handle.close()
        if why := troubles.refused_all(response.status):
            raise Gone(self._said(why))
        return self._answer(_content(response.status, data.decode("utf-8", "replace")))

    def _silent(self, error: OSError | HTTPException) -> Exception:
        """Tell a server that has ended from one that gives no answer to a request."""
        why = troubles.unreached(error, TIMEOUT)
        if isinstance(error, ConnectionError) and self._ended():
            return Gone(self._said("it has ended"))
        return (_Hangs if isinstance(error, TimeoutError) else EngineFailed)(self._said(why))

    def _ended(self) -> bool:
        """Tell whether nobody listens any more. One that has failed may take a moment to end."""
        for _ in range(5):
            if starting(self.parts.geturl()):
                return True
            time.sleep(0.1)
        return False

    def _said(self, why: str) -> str:
        return f"{self.parts.geturl()}: {why}"

    def _answer(self, said: Mapping[str, Any]) -> Answer:
        self.fingerprint = str(said.get("system_fingerprint") or "")[:40]
        choices = sorted(said["choices"], key=lambda choice: int(choice.get("index", 0)))
        details = (said.get("usage") or {}).get("prompt_tokens_details") or {}
        return Answer(tuple(map(self._sample, choices)), details.get("cached_tokens"))

    def cancel(self, handle: Any) -> None:
        """Hang up."""
        handle.close()

    def counts(self) -> Mapping[str, int]:
        """Give what the server's metrics count; what they counted last, if it has ended."""
        self.last = counted(self._get("/metrics"), self._get("/counts")) or self.last
        return self.last

    def _connected(self) -> HTTPConnection:
        return _connection(self.parts)

    def _get(self, path: str) -> str:
        """Read a text of the server; empty if it has none there."""
        connection = self._connected()
        try:
            connection.request("GET", path, headers=_headers())
            response = connection.getresponse()
            text = response.read(LARGEST).decode("utf-8", "replace")
            return text if response.status == 200 else ""
        except (OSError, HTTPException):
            return ""
        finally:
            connection.close()

    def _served(self, name: str) -> tuple[str, str]:
        """Give the name under which the server has the model, and who serves it. The name is this one, its last
        part, or the only one. Raises BadInput if it has several others."""
        try:
            listed = {str(each["id"]): each for each in json.loads(self._get(f"{self.parts.path}/models"))["data"]}
        except (ValueError, KeyError, TypeError):
            return name, ""
        self.models, last = list(listed), name.rstrip("/").rpartition("/")[2]
        found = next((each for each in (name, last) if each in listed), "")
        if not found and len(listed) > 1:
            had = ", ".join(self.models[:9])
            raise BadInput(self._said(f"it has the models {had}, and none named {name!r}: let it serve {last} so"))
        found = found or next(iter(listed), name)
        return found, str(listed.get(found, {}).get("owned_by", ""))[:40]

    def _version(self) -> str:
        """Give the version that the server tells, there or in its answers; empty if it tells none."""
        try:
            return str(json.loads(self._get("/version"))["version"])[:40]
        except (ValueError, KeyError, TypeError):
            return self.fingerprint

    def _meet(self, known: str) -> None:
        """Find which form of a request is taken, and what the server tells. Raises BadInput, CannotRun."""
        try:
            self.model, owner = self._served(self.model)
            if self.probe.adapters:
                self.named = http_adapters.fields(self.models, self._get(http_adapters.LISTED))
            answer = self._first_taken()
            can = {"concurrent", "cancel", "reuse"} | ({"cached"} if answer.cached is not None else set())
            can |= {"samples"} if self._has_samples() else set()
            text = self._get("/metrics")
        except Gone as e:
            raise CannotRun(str(e)) from None
        except EngineFailed as e:
            raise CannotRun(self._said(f"it does not answer as such a server does: {e}")) from None
        can |= {"salt"} if "vllm:" in text else set()
        can |= {"adapters"} if self.named else set()
        tells = self._told(answer.samples[0])
        found = ",".join(f"{name}={size}" for name, size in sizes(text).items())
        name = owner or self.declared.name
        said = Declared(name, self._version(), self.parts.geturl(), tells=tells, can=frozenset(can))
        self.declared = said.with_words(found).with_words(known)

    def _first_taken(self) -> Answer:
        """Give the answer to the first form of a request that is taken."""
        refusal = ""
        for in_words, form in product((False, True), self.logprobs):
            self.in_words, self.logprobs = in_words, [form]
            try:
                return self.wait(self.submit(Request((0, 1, 2))))
            except _Hangs:
                raise
            except (Refused, EngineFailed) as e:  # some servers fail at what they do not know
                refusal = str(e)
        advice = troubles.no_request_taken(refusal, self.models)
        raise BadInput(self._said("; ".join(filter(None, [f"it takes no request: {refusal}", advice]))))

    def _told(self, sample: Sample) -> str:
        """Say what answers hold. Raises BadInput if that is too little for this probe."""
        whole = isinstance(sample.answers, np.ndarray)
        told = min(map(len, sample.answers)) if sample.answers is not None and not whole else 0
        if (
            not whole
            and self.probe.output != "tokens"
            and (why := troubles.too_few(told, self.probe.layout.vocabulary))
        ):
            raise BadInput(self._said(why))
        return "all" if whole else "tokens" if sample.answers is None else "top"

    def _has_samples(self) -> bool:
        """Tell whether it gives several answers to one prompt: the likeliest ones, or some of them by chance."""
        for form in ({}, {"temperature": 1.0}):
            self.samples = form
            try:
                if len(self.wait(self.submit(Request((0, 1, 2), 1, 2, "", {5: 40.0, 9: 40.0}))).samples) == 2:
                    return True
            except Refused:
                continue
        return False

    def _sample(self, choice: Mapping[str, Any]) -> Sample:
        """Read one choice: its logprobs in OpenAI's older form, or in its newer one, or its text alone."""
        found = choice.get("logprobs") or {}
        if rows := found.get("content"):
            tokens = [self._id(row) for row in rows]
            tops = [{self._id(t): float(t["logprob"]) for t in row["top_logprobs"]} for row in rows]
        elif found.get("top_logprobs"):
            tokens = [self._id(word) for word in found["tokens"]]
            tops = [{self._id(word): float(p) for word, p in (top or {}).items()} for top in found["top_logprobs"]]
        else:
            return Sample(tuple(self._id(word) for word in choice["text"].split()))
        return Sample(tuple(tokens), _whole(tops, self.probe.layout.vocabulary))

    def _id(self, said: Any) -> int:
        """Give the id that a server means: a number, token_id:7, or a word. Raises EngineFailed."""
        if isinstance(said, str) and said in self.ids:  # most are, and there are many
            return self.ids[said]
        if isinstance(said, Mapping):
            said = said.get("id", said.get("token"))
        if isinstance(said, int):
            return said
        word = str(said).strip()
        number = re.fullmatch(r"(?:token_id:)?(\d{1,9})", word)
        found = int(number[1]) if number else self.ids.get(word)
        if found is None:
            raise EngineFailed(f"the server gives a token {word[:40]!r}, which this probe does not have")
        return found


def _headers() -> dict[str, str]:
    """Say that JSON is sent; and a key, if there is one."""
    key = troubles.key()
    return {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}


LIKELIEST: dict[str, Any] = {"repeat_penalty": 1.0}
"""What llama-cpp-python's server needs beside a temperature of 0: else it makes tokens of a text less likely."""


def _forms(probe: Probe) -> list[dict[str, Any]]:
    """Give forms of asking for logprobs, the best first: of all ids, of some, of none."""
    if probe.output == "tokens":
        return [LIKELIEST, {}]
    named: dict[str, Any] = {"return_tokens_as_token_ids": True}
    more = [{**named, **LIKELIEST}, named, LIKELIEST, {}]
    return [{"logprobs": k, **each} for k in (probe.layout.vocabulary, -1, 20, 5) for each in more] + [
        LIKELIEST,
        {},
    ]


def _whole(tops: list[dict[int, float]], size: int) -> Any:
    """Make an array of logprobs, if those of all ids are there."""
    if not all(all(i in top for i in range(size)) for top in tops):
        return tops
    return np.array([[top[i] for i in range(size)] for top in tops])


def _content(status: int, text: str) -> Mapping[str, Any]:
    """Read what a server answers. Raises Refused for a request that it does not take, else EngineFailed."""
    if status != 200:
        said = f"status {status}: {' '.join(text.split())[:300]}"
        if status in (400, 404, 405, 413, 422):
            raise Refused("", said)
        raise EngineFailed(said)
    try:
        said = json.loads(text)
    except ValueError:
        raise EngineFailed(f"the server's answer is no JSON: {text[:100]!r}") from None
    if not isinstance(said, dict) or not isinstance(said.get("choices"), list):
        raise EngineFailed(f"the server's answer has no choices: {text[:100]!r}")
    return said
