"""Writes down what the continuous batching of Hugging Face transformers decides: a log of steps, which `kvconform
check LOG` judges.

    from kvadapters.serving import transformers_steps

    transformers_steps.register()  # before the manager starts; KVSTEPS says where the log goes

Of several ranks of one engine the first writes. Full layers are told. Of layers with a window nothing is told: a
request has a ring of its own there, which no other one ever finds. Pages that are kept on the host are told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from transformers.generation.continuous_batching.continuous_api import ContinuousBatchProcessor

from kvadapters.serving.step_log import VARIABLE, StepLog, log_path

FULL = "full_attention"


class TransformersSteps(StepLog):
    """The log of a processor from its start on. Of a step that is held back it knows the requests. Raises
    ValueError for a processor without full layers."""

    def __init__(self, processor: Any) -> None:
        self.cache, self.host = processor.cache, processor.offloading_manager
        if FULL not in self.cache.cache_allocators:
            raise ValueError(f"a log of steps tells full layers, and there are none; unset {VARIABLE}")
        self.pages, self.pool = self.cache.cache_allocators[FULL], self.cache.pool
        self.alive: set[str] = set()
        """The requests that came and have not ended."""
        self.copying: set[str] = set()
        """Forks whose pages are not copied yet."""
        self.preempts = False
        """Whether pages go back of requests that come again."""
        ranks, each = processor.distributed_helper, self.pages.blocks_per_sector
        super().__init__(
            log_path(ranks.dp_size, ranks.dp_rank),
            engine="transformers",
            pages=self.pages.num_blocks + 2 * each,
            reserved=list(range(2 * each)),  # the two sectors of padding come first
            groups=[{"block": self.pages.tokens_per_page, "view": "full"}],
        )

    def added(self, state: Any) -> None:
        """Tell of a request, unless it was preempted and comes again."""
        if state.request_id not in self.alive:
            self.alive.add(state.request_id)
            self.write(add=state.request_id, tokens=text(state))

    def running(self, requests: list[Any]) -> None:
        """Tell which rows a step computes. A prompt whose last token waits for a fork may have none."""
        parts = {each.state.request_id: self.part(each) for each in requests if each.query_length}
        self.hold(parts, requests)

    def part(self, each: Any) -> dict[str, Any]:
        """Tell what a step computes of a request."""
        name = each.state.request_id
        told = self.told(name, [list(self.pages.block_table[name])])
        return {"start": each.state.position_offset, "n": each.query_length, **told}

    def updated(self, texts: dict[str, tuple[Any, int]]) -> None:
        """Tell which tokens a step chose: those that its requests have now, and did not have before."""
        self.swapped()
        chosen = {name: state.generated_tokens[n:] for name, (state, n) in texts.items()}
        self.release({name: list(tokens) for name, tokens in chosen.items() if tokens})
        if self.pages.block_table.keys() <= self.tables.keys() and len(self.cache.cache_allocators) == 1:
            self.write(left=self.left())

    def swapped(self) -> None:
        """Tell which requests got the pages of others, that have the same rows."""
        for name in sorted(self.tables.keys() - self.copying):
            self.swap(name)

    def swap(self, name: str) -> None:
        """Tell that a request has other pages, if it has."""
        now = [self.pages.block_table[name][: len(self.tables[name][0])]]
        if now != self.tables[name]:
            self.tables[name] = now
            self.write(swap=name, tables=now)

    def left(self) -> int:
        """Count the pages that are free, or that may be evicted."""
        free = self.pool.count_free_blocks(self.pages.index) + len(self.pages.ledger.cached_blocks)
        return int(free + self.pool.num_free_sectors * self.pages.blocks_per_sector)

    def gone(self, name: str) -> None:
        """Tell that the pages of a request go back, and that it has ended, unless it comes again."""
        if name in self.tables:
            self.swap(name)
        if name in self.alive:
            self.freed(name, not self.preempts)
        if not self.preempts:
            self.alive.discard(name)

    def forked(self, parent: Any, children: list[str]) -> None:
        """Tell of requests that go on as another one does, in its pages until these are copied."""
        name = parent.request_id
        for child in children:
            self.alive.add(child)
            if name in self.tables:
                self.copying.add(child)
                self.tables[child] = [list(table) for table in self.tables[name]]
                self.write(**{"fork": name, "as": child})
            else:
                self.write(add=child, tokens=text(parent))

    def kept(self, states: list[Any], tables: dict[str, dict[str, list[int]]], done: set[str]) -> None:
        """Tell which pages are kept on the host."""
        for name in (state.request_id for state in states if state.request_id in done):
            self.write(offload=pairs(tables[name][FULL], self.host._request_id_to_cpu_blocks[name][FULL]))

    def brought(self, requests: list[Any]) -> None:
        """Tell which pages come back from the host."""
        for name in (each.state.request_id for each in requests if each.state.is_cpu_offloaded):
            places = self.host._request_id_to_cpu_blocks[name][FULL]
            moved = pairs(self.pages.block_table[name][: len(places)], places[: len(self.pages.block_table[name])])
            self.write(load=[[key, page] for page, key in moved])


def text(state: Any) -> list[int]:
    """Give the tokens of a request so far."""
    return [*state.initial_tokens, *state.generated_tokens]


def pairs(pages: list[int], places: list[int]) -> list[list[Any]]:
    """Name the places on the host."""
    return [[page, f"host {place}"] for page, place in zip(pages, places, strict=True)]


def comes(log: TransformersSteps, right: Callable[..., Any], state: Any) -> None:
    """Tell that a request waits, for the first time or again."""
    right(state)
    log.added(state)


def runs(log: TransformersSteps, right: Callable[..., Any], requests_in_batch: list[Any], **more: Any) -> None:
    """Tell of a step, before the requests are counted as computed."""
    log.running(requests_in_batch)
    right(requests_in_batch, **more)


def takes(log: TransformersSteps, right: Callable[..., Any]) -> None:
    """Tell which tokens a step chose."""
    states = [each.state for each in log.held[0].about]
    texts = {state.request_id: (state, len(state.generated_tokens)) for state in states}
    right()
    log.updated(texts)


def frees(log: TransformersSteps, right: Callable[..., Any], name: str, *args: Any, **more: Any) -> None:
    """Tell that the pages of a request go back."""
    log.gone(name)
    right(name, *args, **more)


def preempts(log: TransformersSteps, right: Callable[..., Any]) -> Any:
    """Know that requests whose pages go back come again."""
    log.preempts = True
    try:
        return right()
    finally:
        log.preempts = False


def forks(log: TransformersSteps, right: Callable[..., Any], parent: Any, names: list[str], copies: Any) -> Any:
    """Tell of forks."""
    log.swapped()
    done = right(parent, names, copies)
    log.forked(parent, done)
    return done


def copies(log: TransformersSteps, right: Callable[..., Any], moved: dict[str, Any]) -> None:
    """Tell which pages are copied, and that forks have these now."""
    right(moved)
    if moved[FULL][0]:
        log.write(copy=[list(pair) for pair in zip(*moved[FULL], strict=True)])
    log.copying.clear()
    log.swapped()


def keeps(log: TransformersSteps, right: Callable[..., Any], states: list[Any], tables: Any) -> Any:
    """Tell which pages are kept on the host."""
    done = right(states, tables)
    log.kept(states, tables, done)
    return done


def brings(log: TransformersSteps, right: Callable[..., Any], requests: list[Any]) -> None:
    """Tell which pages come back from the host."""
    log.brought(requests)
    right(requests)


def ends(log: TransformersSteps, right: Callable[..., Any]) -> None:
    """Tell that all requests end. What they computed may be found."""
    for name in sorted(log.alive):
        log.gone(name)
    right()


HOOKS: dict[str, Callable[..., Any]] = {
    "scheduler.add_waiting_request": comes,
    "inputs_and_outputs.prepare_batch_tensors": runs,
    "update_batch": takes,
    "cache.free_blocks": frees,
    "offloading_manager.offload_requests": preempts,
    "cache.prepare_fork_request": forks,
    "cache.perform_cache_copy": copies,
    "offloading_manager._offload_to_cpu": keeps,
    "offloading_manager.restore_scheduled_requests": brings,
    "reset": ends,
}
"""What of a processor tells the log, and how."""


def attach(processor: Any) -> None:
    """Begin a log with a processor."""
    processor.step_log = TransformersSteps(processor)
    for path, hook in HOOKS.items():
        *of, name = path.split(".")
        owner = getattr(processor, of[0]) if of else processor
        setattr(owner, name, partial(hook, processor.step_log, getattr(owner, name)))


def register() -> None:
    """Let each processor that is made write a log; of several ranks the first. Once is enough."""
    made = ContinuousBatchProcessor.__init__

    def logged(self: Any, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        if self.distributed_helper.is_tp_driver:
            attach(self)

    if made.__name__ != logged.__name__:
        ContinuousBatchProcessor.__init__ = logged
