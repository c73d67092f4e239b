"""Says what stands between a client and a server, and what to do about it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from http.client import HTTPException
from socket import gaierror

KEY = "KVCONFORM_API_KEY"
"""The variable of the environment that holds the key of a server which asks for one."""
FEWEST = 40
"""Logprobs of fewer ids say next to nothing of what a query saw."""
TOKENS = "write the probe with --output tokens, which needs none, and load that"


def unreached(error: OSError | HTTPException, patience: float) -> str:
    """Say why a request did not reach a server, or its answer did not come."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted: SSL_CERT_FILE names a file of those that are"
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS there: does its address begin with http://?"
    if isinstance(error, gaierror):
        return "no machine of this name is known: is the address spelt rightly?"
    if isinstance(error, TimeoutError):
        return f"it gave no answer within {patience:.0f} s: it hangs, or is too slow"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there: is it up?"
    said = f"{type(error).__name__}: {error}"
    return f"it gives no answer ({said}); is it up, and does it speak HTTP there, not HTTPS?"


def refused_all(status: int) -> str:
    """Say what a status means that every request would get; empty, if it is not of that kind."""
    if status == 401 and not key():
        return f"it asks for a key (status 401): put it into the variable {KEY}"
    if status in (401, 403):
        return f"it lets this client not in (status {status}): is the key in {KEY} the right one?"
    return ""


def key() -> str:
    """Give the key that is to be sent; empty, if there is none."""
    return os.environ.get(KEY, "")


def no_request_taken(refusal: str, models: Sequence[str]) -> str:
    """Say what may be wrong where a server refuses a request of three tokens in all forms."""
    if "does not have" in refusal:
        return "has it loaded the probe that --model names?"
    if not refusal.startswith("status 404"):
        return ""
    if not models:
        return "it has no OpenAI API at this address: does it end with /v1?"
    return (
        "kvconform asks for completions of tokens. A server that has chats alone cannot be judged: its template "
        "adds tokens that nobody asked for"
    )


def too_few(told: int, all_ids: int) -> str:
    """Say what is missing where logprobs of `told` ids are answered and `all_ids` are needed; empty, if they do."""
    if told >= min(FEWEST, all_ids):
        return ""
    had = f"the logprobs of {told} ids alone" if told else "no logprobs"
    return (
        f"it gives {had}, which do not tell what a query sees. Let it give those of all {all_ids} (vLLM: "
        f"--max-logprobs -1), or {TOKENS}"
    )
