"""Bugs of the fast kernels, in CUDA: what each tool must catch."""

from __future__ import annotations

from tools.sanitizers.findings import DIFFERENCE, DIVERGENCE, REFUSAL
from tools.sanitizers.plain_bugs import HEADS
from tools.sanitizers.planted import Planted, of_kind

EARLY_STEP = Planted(
    "a length that changes while others of its block read it", "", "__syncthreads(); /* by now", "/* by now"
)

FAST = {
    "asan-warps": (
        Planted("the row behind each", "read past the end", "rows + at * (dim", "rows + (at + 1) * (dim"),
        Planted("the next page's number", "read past the end", "(u32)slots] * apart", "(u32)slots + 1] * apart"),
        Planted("a query more than there are", "read past the end", "< until &&", "<= until &&"),
        Planted("an output more than there are", "write past the end", "if (!columns.real(column)) continue;", ""),
        Planted(
            "room for a warp less",
            "write outside shared memory",
            "warp_m[WARPS]",
            "warp_m[WARPS - 1]",
        ),
        Planted(
            "outputs that end behind shared memory",
            "write outside shared memory",
            "(float *)memory",
            "(float *)(memory + WARPS * (UNITS * UNIT_BYTES - COLUMNS * V_DIM * 4))",
        ),
        Planted("a unit too far in shared memory", REFUSAL, "+ warp * UNITS", "+ (warp + 1) * UNITS"),
        Planted(
            "a part behind the last", "write past the end", "slot + piece.split) * C", "slot + 2 * COUNTERS) * C"
        ),
        Planted("a barrier of warps that have rows", DIVERGENCE, "arrived<0>();", "arrived<0>();\n  if (mine)"),
    ),
    "tsan-warps": (
        Planted("every pass takes the first heads", "race between blocks", "pass * PER_PASS, asked", "0, asked"),
        Planted(
            "warps joined before all are there",
            "race within a block",
            "  __syncthreads();\n  float *part",
            "  float *part",
        ),
        Planted(
            "outputs over rows that others still read",
            "race within a block",
            "arrived<0>();\n  __syncthreads();",
            "arrived<0>();",
        ),
        Planted(
            "a count read before it is there",
            "race within a block",
            "  __syncthreads();\n  if (*before_me",
            "  if (*before_me",
        ),
        Planted(
            "a count by every thread", "race within a block", "if (warp == 0 && lane == 0) *before_me", "*before_me"
        ),
        Planted(
            "a unit filled while others read it",
            "race within a block",
            "__syncwarp();\n    FETCH(i + (UNITS - 1) / 2, (UNITS - 1) % 2)",
            "FETCH(i + (UNITS - 1) / 2, (UNITS - 1) % 2)\n    __syncwarp();",
        ),
        Planted(
            "a unit read before the warp met",
            "race within a block",
            "__syncwarp();\n    FETCH(i + UNITS / 2, UNITS % 2)",
            "shim::show_copies();\n    FETCH(i + UNITS / 2, UNITS % 2)",
        ),
        Planted("warps that share a ring", "race within a block", "memory) + warp *", "memory) + 0 *"),
        Planted("splits that write to one place", "race between blocks", "slot + piece.split) * C", "slot) * C"),
        Planted(
            "no fence before splits are counted",
            "race between blocks",
            "  __threadfence();\n  __syncthreads();\n  if (warp == 0",
            "  __syncthreads();\n  if (warp == 0",
        ),
        Planted(
            "no fence before splits are read", "race between blocks", "return;\n  __threadfence();\n", "return;\n"
        ),
    ),
    "asan-prefill": (
        Planted("a stage that begins behind the last row", "read past the end", "p + r < high", "p + r <= high"),
        Planted("the page of a tile without rows", "read past the end", "p < high && p + TILE > low ?", "1 ?"),
        Planted("a query more than there are", "write past the end", "< until &&", "<= until &&"),
        Planted("an output more than there are", "write past the end", "if (!columns.real(column)) continue;", ""),
        Planted("a third stage", REFUSAL, "two + (i + 1 & 1)", "two + (i + 1) % 5"),
        Planted(
            "parts of queries of a warp too many",
            "write outside shared memory",
            "2 * STAGE_BYTES + warp",
            "2 * STAGE_BYTES + (warp + 1)",
        ),
        Planted(
            "a barrier of warps that see rows",
            DIVERGENCE,
            "__syncthreads(); /* it",
            "if (p < any_stop) __syncthreads(); /* it",
        ),
    ),
    "tsan-prefill": (
        Planted(
            "a stage filled while others read it",
            "race within a block",
            "    __syncthreads(); /* it",
            "    __syncwarp(); /* it",
        ),
        Planted("a stage filled where others read", "race within a block", "two + (i + 1 & 1)", "two + (i & 1)"),
        Planted(
            "warps that share the parts of queries",
            "race within a block",
            "2 * STAGE_BYTES + warp *",
            "2 * STAGE_BYTES + 0 *",
        ),
        Planted(
            "every warp writes the same part",
            "race within a block",
            "BLOCK_COLUMNS + warp * COLUMNS) * PART",
            "BLOCK_COLUMNS) * PART",
        ),
        Planted(
            "blocks that overlap", "race between blocks", "% runs * BLOCK_COLUMNS", "% runs * (BLOCK_COLUMNS - 1)"
        ),
    ),
    "asan-copies": (
        Planted(
            "words far behind the last, moved",
            "write past the end",
            "GROUPS(0), d[i],\n",
            "GROUPS(0), d[4096 * i],\n",
        ),
        Planted(
            "rows read far behind the last",
            "read past the end",
            "blocks, d[i], s[i])",
            "blocks, d[i], s[4096 * i])",
        ),
        Planted(
            "a table of more pages", "read past the end", "(i64)table[entry]", "(i64)table[4096 * entry + 4096]"
        ),
        Planted("a buffer filled too far", "write past the end", "to)[q] = all", "to)[q + 1] = all"),
        Planted("zeros in a guard band", DIFFERENCE, "i < values_end)) << k", "i <= values_end)) << k"),
    ),
    "tsan-copies": (
        Planted("items that take the same words", "race within a block", "begin + k * (lanes);", "begin + k;"),
        Planted("a length that changes too early", "race within a block", "    MEET(); /* by now", "    /* by now"),
        Planted(
            "every block copies all heads", "race between blocks", HEADS, "for (i64 head = 0; head < heads; ++head)"
        ),
    ),
    "asan-wide": (
        Planted("a query more than there are", "read past the end", "< until &&", "<= until &&"),
        Planted(
            "the output of the head behind",
            "write past the end",
            "(real ? columns.at(column)",
            "(real ? 1 + columns.at(column)",
        ),
        Planted("a third tile", REFUSAL, "two + (i + 1 & 1)", "two + (i + 1) % 5"),
        Planted(
            "a barrier of warps that add up",
            DIVERGENCE,
            "  __syncthreads();\n#pragma",
            "  if (warp) __syncthreads();\n#pragma",
        ),
    ),
    "tsan-wide": (
        Planted(
            "a tile filled while others read it",
            "race within a block",
            "    __syncthreads(); /* it",
            "    __syncwarp(); /* it",
        ),
        Planted(
            "scores read before they are there",
            "race within a block",
            "  __syncthreads();\n#pragma",
            "  __syncwarp();\n#pragma",
        ),
        Planted("warps that write the same share", "race within a block", "(warp + j / 2 *", "(0 + j / 2 *"),
        Planted("splits that write to one place", "race between blocks", "slot + piece.split) * C", "slot) * C"),
    ),
    "asan-hopper": (
        Planted("a row behind the last seen", "read past the end", "at >= rows.low && at < rows.high;", "true;"),
        Planted("a query more than there are", "read past the end", "< until &&", "<= until &&"),
        Planted("an output more than there are", "write past the end", "else if (real) to[d]", "else to[d + 9999]"),
        Planted(
            "boxes of a third stage", REFUSAL, "at.keys(stage), at.filled", "at.keys(stage) + 131072, at.filled"
        ),
        Planted("a barrier for one group", REFUSAL, "at.read(i), WARP_GROUPS * 4", "at.read(i), 4"),
    ),
    "asan-latent": (
        Planted("a row behind the last seen", "read past the end", "at >= rows.low && at < rows.high;", "true;"),
        Planted("a query more than there are", "read past the end", "< until &&", "<= until &&"),
        Planted("an output more than there are", "write past the end", "else if (real) to[d]", "else to[d + 9999]"),
        Planted("weights behind the last", REFUSAL, "group * (OWN / 8) + e)", "group * (OWN / 8) + 999 * e)"),
        Planted("maxima of half of those who tell", DIVERGENCE, "at.told(), GROUPS_OF * 4", "at.told(), 4"),
    ),
    "asan-step": (
        Planted("a value wider than it is", "read past the end", "j < width_v;", "j < width_v + 1;"),
        Planted("a sequence more than there are", "read past the end", "s < sequences;", "s <= sequences;"),
        Planted(
            "a table that begins too late", "read past the end", "tables + s * wide", "tables + s * (wide + 1)"
        ),
        Planted("the line of a position further on", "read past the end", "+ at * dims", "+ (at + 8) * dims"),
        Planted("a page that is not noted", DIFFERENCE, "if (slot == 0) *its = begun;", ""),
        Planted(
            "a barrier of warps that have heads",
            DIVERGENCE,
            "__syncthreads(); /* by now",
            "if (threadIdx.y < kv_heads) __syncthreads(); /* by now",
        ),
    ),
    "tsan-step": (
        of_kind(EARLY_STEP, "race within a block"),
        Planted("every warp does all heads", "race within a block", "head = threadIdx.y;", "head = 0;"),
        Planted("a page noted by every thread", "race within a block", "begun = slot ?", "begun = *its = slot ?"),
        Planted(
            "every block steps all sequences",
            "race between blocks",
            "s = blockIdx.y; s < sequences; s += gridDim.y",
            "s = 0; s < sequences; ++s",
        ),
    ),
}
"""By check: what each must catch."""
