"""Bucketed caches: the host's rows, and steps of a graph on device handles. It observes both."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import Operation, argument
from kvspec.session.operations.attention import answered
from kvspec.session.state import SessionState, call, metered, offered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe the length, the bound, and the rows of every layer: read back, on the host, and in the handles, if
    the cache offers them."""
    step.values["past"], stored = int(cache.past()), hasattr(cache, "bound")
    if stored:
        bound = cache.bound()
        step.values["bound"] = None if bound is None else int(bound)
    if "state" in session.observe:
        for layer in range(session.config.layers or 0):
            session.take(step, f"state.{layer}", cache.read(layer))
            session.take(step, f"host.{layer}", cache.host(layer))
            if stored:
                session.take(step, f"handle.{layer}", cache.handle(layer))
    session.held(cache, step, which)


def bind(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Install handles without a step."""
    metered(session, step, cache, "bind", bool(argument(op, "refresh")))


def decode(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Run one step of the graph."""
    arrays, do = session.handed(op, inputs), offered(cache, "decode")
    how = argument(op, "splits"), bool(argument(op, "refresh")), op.get("past")
    answered(session, op, step, inputs, lambda out: do(*arrays, *how, out))
    _ran(cache, step)


def block(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Run a block that commits nothing."""
    arrays, do = session.handed(op, inputs), offered(cache, "block")
    how = argument(op, "splits"), op.get("past")
    answered(session, op, step, inputs, lambda out: do(*arrays, *how, out))
    if op["n"]:
        _ran(cache, step)


def _ran(cache: Any, step: Step) -> None:
    """Note which graph ran, and how much of it was used, if the cache tells."""
    if hasattr(cache, "ran"):
        ran = cache.ran()
        step.values["key"], step.values["extent"] = int(ran.key), [int(n) for n in ran.extent]


def cross(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Attend with queries over those rows."""
    (queries,), do = session.handed(op, inputs), offered(cache, "cross")
    answered(session, op, step, inputs, lambda out: do(queries, argument(op, "splits"), out))


DO = {
    "prefill": call("prefill"),
    "bind": bind,
    "decode": decode,
    "block": block,
    "unbind": call("unbind"),
    "sync": call("sync"),
    "cut": call("cut", "to"),
    "encode": call("encode"),
    "cross": cross,
}
