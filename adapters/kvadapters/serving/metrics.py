"""What a server's metrics say, in the text form of Prometheus: sizes of its cache, and what it has counted."""

from __future__ import annotations

import re

COUNTERS = {
    "cached tokens": ("vllm:prefix_cache_hits_total", "kv:cached_tokens_total"),
    "evictions": ("kv:evictions_total",),
    "preemptions": ("vllm:num_preemptions_total", "kv:preemptions_total"),
    "drafts accepted": ("vllm:spec_decode_num_accepted_tokens_total", "kv:drafts_accepted_total"),
    "drafts rejected": ("kv:drafts_rejected_total",),
}
"""What is counted, and the names that servers give it."""

_DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
_SIZES = {"block": "block_size", "blocks": "num_gpu_blocks"}


def sizes(text: str) -> dict[str, int]:
    """Give the sizes of a cache."""
    line = next((x for x in text.splitlines() if x.startswith(("vllm:cache_config_info{", "kv:cache_config{"))), "")
    found = {ours: re.search(rf'\b{theirs}="(\d{{1,7}})"', line) for ours, theirs in _SIZES.items()}
    return {name: int(value[1]) for name, value in found.items() if value}


def counted(text: str) -> dict[str, int]:
    """Give what was counted, over all engines of a server."""
    values = dict[str, float]()
    for name, value in re.findall(r"^([\w:]+)(?:\{[^}\n]*\})? ([\d.e+]{1,30})$", text, re.M):
        values[name] = values.get(name, 0.0) + float(value)
    found = {ours: sum(values[t] for t in theirs if t in values) for ours, theirs in COUNTERS.items()}
    told = {ours for ours, theirs in COUNTERS.items() if any(t in values for t in theirs)}
    if _DRAFTED in values:
        found["drafts rejected"] = values[_DRAFTED] - found["drafts accepted"]
        told.add("drafts rejected")
    return {name: int(found[name]) for name in COUNTERS if name in told}
