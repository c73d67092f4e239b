"""The systems this spec was written from, feature by feature, and the clauses that say what each feature must do.

Every clause stands beside at least one feature; a feature whose chapter is still to come has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kvspec.errors import BadInput


@dataclass(frozen=True)
class Feature:
    """One thing a system does: a few words, and the clauses that bind it, as `GROW-1..4 RING-2`."""

    name: str
    bound_by: str = ""

    @property
    def clauses(self) -> tuple[str, ...]:
        """The ids of its clauses; none while its chapter is to come."""
        return tuple(i for part in self.bound_by.split() for i in _ids(part))


@dataclass(frozen=True)
class System:
    """One engine's cache, the file it was read from, and what it does."""

    name: str
    file: str
    features: tuple[Feature, ...]


def _ids(part: str) -> list[str]:
    found = re.fullmatch(r"([A-Z]+)-(\d+)(?:\.\.(\d+))?", part)
    if found is None:
        raise BadInput(f"{part!r} is no clause and no range of clauses")
    first, last = int(found[2]), int(found[3] or found[2])
    return [f"{found[1]}-{n}" for n in range(first, last + 1)]


SYSTEMS = (
    System(
        "mlx_native, copies into a preallocated buffer",
        "mlx_native_kv_cache_copy.rs",
        (
            Feature("Token-major and head-major buffers", "COPY-1..3"),
            Feature("Linear and sliding writes, any chunk", "COPY-4..8 COPY-23"),
            Feature("Every other byte untouched", "COPY-9..10"),
            Feature("Same dtype: every bit", "COPY-11"),
            Feature("Casts that narrow: to nearest even", "COPY-12..15"),
            Feature("What is refused, with its numbers", "COPY-16..22"),
            Feature("Bytes held by a buffer", "MEM-5"),
            Feature("One launch, no detour over the host", "RESIDENCY-1..3 RESIDENCY-7..8 RESIDENCY-12"),
        ),
    ),
    System(
        "ollama, growing cache",
        "ollama_mlxrunner_cache.go",
        (
            Feature("Append, history and view", "GROW-1..4 GROW-12..15"),
            Feature("Rewind and free", "GROW-5..9"),
            Feature("Growth by steps", "GROW-16..18 MEM-1..2 RESIDENCY-4"),
            Feature("What is refused", "GROW-10..11"),
            Feature("Laws of a growing cache", "GROW-19..24"),
        ),
    ),
    System(
        "ollama, rotating cache",
        "ollama_mlxrunner_cache.go",
        (
            Feature("The window, append and view", "RING-1..5 RING-15..17"),
            Feature("Rewind and free", "RING-6..12"),
            Feature("Storage, slot by slot", "RING-18..27 MEM-3 RESIDENCY-5..6"),
            Feature("What is refused", "RING-13..14"),
            Feature("Laws of a ring", "RING-28..33"),
        ),
    ),
    System(
        "ollama, masks",
        "ollama_mlxrunner_cache.go",
        (
            Feature("Causal, window, arrays, intersections", "MASK-2..7 MASK-14..15"),
            Feature("From position order to slots", "MASK-8..11 MASK-17"),
            Feature("What is refused, zero queries", "MASK-1 MASK-12..13 MASK-16"),
            Feature("Masks over the host only as they are", "RESIDENCY-10"),
        ),
    ),
    System(
        "ollama, snapshots",
        "ollama_mlxrunner_cache.go",
        (
            Feature("Snapshot and restore", "SNAP-1..16 SNAP-31"),
            Feature("Merge and split", "SNAP-17..26 SNAP-30"),
            Feature("Closing, and exact sizes", "SNAP-27..29"),
            Feature("Copied once, on the device", "RESIDENCY-9 RESIDENCY-11"),
        ),
    ),
    System(
        "ollama, speculation",
        "ollama_mlxrunner_cache.go",
        (
            Feature("Drafts and what they see", "DRAFT-1..9"),
            Feature("Rounds over layers, live caches meanwhile", "DRAFT-10..17"),
            Feature("Commit, abandon, dead drafts", "DRAFT-18..25"),
            Feature("Isolated speculation", "DRAFT-26..28"),
            Feature("Laws of rounds", "DRAFT-29..32"),
            Feature("What a round may cost", "RESIDENCY-13..14"),
        ),
    ),
    System(
        "realizar, store of many layers",
        "realizar_kv_cache.rs",
        (
            Feature("Rows of every layer, a length each", "STORE-1..11 STORE-29..30"),
            Feature("Reset, zero, rollback, set length", "STORE-12..17 STORE-31..32"),
            Feature("Host snapshots", "STORE-18..24 STORE-33"),
            Feature("Initialising again", "STORE-25..26"),
            Feature("Fingerprint", "STORE-27..28"),
            Feature("Planning: bytes, and the largest batch", "MEM-4 MEM-6..18"),
            Feature("What initialising may cost", "RESIDENCY-15"),
        ),
    ),
    System(
        "realizar, batch of a store",
        "realizar_kv_cache.rs",
        (
            Feature("Allocation, reuse, stable addresses", "BATCH-1..5 BATCH-20 MEM-19"),
            Feature("Scatter", "BATCH-6..12 BATCH-29 RESIDENCY-16"),
            Feature("Step", "BATCH-13..16 RESIDENCY-17"),
            Feature("Rollback and reset of sequences", "BATCH-17..19"),
            Feature("Neighbours and the store keep every bit", "BATCH-21..22 BATCH-28"),
            Feature("Captured work", "BATCH-23..27 BATCH-30"),
        ),
    ),
    System(
        "realizar, incremental attention",
        "realizar_incremental_attention.rs",
        (
            Feature("Append, then attend; grouped heads", "ATTN-1..3 ATTN-12..16 ATTN-33"),
            Feature("What a query sees: causal, windows, arrays", "ATTN-4..5 ATTN-7..11 ATTN-36"),
            Feature("Attention over a ring, a batch", "ATTN-6 ATTN-17..19 ATTN-34..35"),
            Feature("Captured attention that advances its length", "ATTN-20..22"),
            Feature("What attention refuses", "ATTN-23..28"),
            Feature("Outputs: strict to the bit, or within a bound", "ATTN-29..32 ATTN-37"),
            Feature("What attention may cost", "RESIDENCY-18..20"),
            Feature("Paged caches: a pool, block tables", "PAGE-1..13 PAGE-17 PAGE-39..43 PAGE-46"),
            Feature("Shared prefixes, copied when written to", "PAGE-14..16 PAGE-18..27 PAGE-45"),
            Feature("Rows and attention through tables", "PAGE-28..38 PAGE-44"),
        ),
    ),
    System(
        "rlx, bucketed caches bound to handles",
        "rlx_gpu_kv.rs",
        (
            Feature("Rows padded to a bound and masked", "BUCKET-1..8 BUCKET-26..32 BUCKET-38"),
            Feature("Handles installed, kept, refreshed", "BUCKET-9..11 BUCKET-13 BUCKET-17 BUCKET-33..34"),
            Feature("Crossing to a larger bound on the device", "BUCKET-12 BUCKET-36..37 BUCKET-39..40"),
            Feature("The host's rows: sync, cut, reading back", "BUCKET-18..21 BUCKET-41"),
            Feature("Multi-token blocks", "BUCKET-14..16 BUCKET-35 BUCKET-42"),
            Feature("Cross-attention rows", "BUCKET-22..25"),
            Feature("Bytes held by handles, and what a step may cost", "BUCKET-43..47"),
            Feature("RoPE: both pairings, any position", "ROPE-1..18 ROPE-24..25"),
            Feature("RoPE in attention: a token's own position", "ROPE-19..23 ROPE-26..28"),
            Feature("One launch, one line of a table", "ROPE-29..30"),
        ),
    ),
)
"""Each system in the order of its chapters."""


def bound() -> set[str]:
    """Every clause that stands beside a feature."""
    return {i for system in SYSTEMS for feature in system.features for i in feature.clauses}
