"""What a server says of itself: metrics in the text form of Prometheus, or counts as an object of JSON."""

from __future__ import annotations

import json
import re

from kvadapters.serving.driver import COUNTED

COUNTERS = {
    "cached tokens": ("prefix_cache_hits_total", "prompt_tokens_cached_total"),
    "preemptions": ("num_preemptions_total",),
    "drafts accepted": ("spec_decode_num_accepted_tokens_total",),
}
"""What is counted, and its names among a server's metrics, behind `vllm:`, `llamacpp:` or another server's name."""

_DRAFTED = "spec_decode_num_draft_tokens_total"
_SIZES = {"block": "block_size", "blocks": "num_gpu_blocks"}


def sizes(text: str) -> dict[str, int]:
    """Give the sizes of a cache."""
    line = next((x for x in text.splitlines() if x.startswith("vllm:cache_config_info{")), "")
    found = {ours: re.search(rf'\b{theirs}="(\d{{1,7}})"', line) for ours, theirs in _SIZES.items()}
    return {name: int(value[1]) for name, value in found.items() if value}


def counted(metrics: str, counts: str) -> dict[str, int]:
    """Give what was counted, over all engines of a server, from its metrics and its counts."""
    values = dict[str, float]()
    for name, value in re.findall(r"^\w+:(\w+)(?:\{[^}\n]*\})? ([\d.e+]{1,30})$", metrics, re.M):
        values[name] = values.get(name, 0.0) + float(value)
    told = {ours: [values[name] for name in theirs if name in values] for ours, theirs in COUNTERS.items()}
    found = {ours: int(numbers[0]) for ours, numbers in told.items() if numbers}
    if _DRAFTED in values:
        found["drafts rejected"] = int(values[_DRAFTED]) - found.get("drafts accepted", 0)
    return found | _plain(counts)


def _plain(counts: str) -> dict[str, int]:
    try:
        said = json.loads(counts) if counts else {}
    except ValueError:
        return {}
    known = said if isinstance(said, dict) else {}
    return {name: known[name] for name in COUNTED if type(known.get(name)) is int}
