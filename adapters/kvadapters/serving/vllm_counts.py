"""What vLLM in this process counts: by its statistics of each step, and by its events of blocks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from vllm.distributed.kv_events import BlockRemoved, NullEventPublisher
from vllm.v1.metrics.loggers import StatLoggerBase

from kvadapters.serving.driver import COUNTED


class Counts(StatLoggerBase):  # type: ignore[misc]
    """Adds up what each step of the engine tells."""

    def __init__(self, counted: Counter[str]) -> None:
        self.counted = counted
        counted.update(dict.fromkeys(COUNTED, 0))  # adds nothing where it has counted before

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **more: Any) -> None:
        """Add a step."""
        if scheduler_stats:
            self.counted["cached tokens"] += scheduler_stats.prefix_cache_stats.hits
        if scheduler_stats and (drafts := scheduler_stats.spec_decoding_stats):
            self.counted["drafts accepted"] += drafts.num_accepted_tokens
            self.counted["drafts rejected"] += drafts.num_draft_tokens - drafts.num_accepted_tokens
        if iteration_stats:
            self.counted["preemptions"] += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Nothing is logged."""


class Evictions(NullEventPublisher):  # type: ignore[misc]
    """Counts blocks whose rows are not found any more, as their place is given to others."""

    def __init__(self, counted: Counter[str]) -> None:
        super().__init__()
        self.counted = counted

    def publish(self, events: Any) -> None:
        """Count a batch of events."""
        removed = (len(event.block_hashes) for event in events.events if isinstance(event, BlockRemoved))
        self.counted["evictions"] += sum(removed)
