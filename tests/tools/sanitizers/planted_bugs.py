"""Bugs that each tool must catch, and name by the kind given here: changes to the text of the kernels."""

from __future__ import annotations

from dataclasses import dataclass

from tools.sanitizers.findings import DIFFERENCE, DIVERGENCE, REFUSAL


@dataclass(frozen=True)
class Planted:
    """`old` becomes `new` wherever it stands in the text. Without them the runtime misbehaves: `watched.Hasty`."""

    name: str
    kind: str
    old: str = ""
    new: str = ""

    def plant(self, text: str) -> str:
        """The text with the bug in it. An AssertionError if there is no place for it any more."""
        assert self.old in text, f"{self.name}: the kernels no longer say {self.old!r}; plant it elsewhere"
        return text.replace(self.old, self.new) if self.old else text


TARGET = "GLOBAL WORD *d = to + (head * to_slots + t) * width"
SOURCE = "GLOBAL const WORD *s = from + (head * from_slots + slot) * width"
LANES = "for (i64 j = ITEM(0); j < width; j += ITEMS(0))"
ACROSS = f"{LANES} PUT(d + j, s[j])"
HEADS = "for (i64 head = GROUP(1); head < heads; head += GROUPS(1))"
COPIED = "PUT(d + j, CONVERT(s[j]))"
SLOT = "GLOBAL TO *d = to + (head * slots + slot) * width"
TOKEN = "GLOBAL const FROM *s = from + (t * heads + head) * width"
GATHERED = (
    "GLOBAL const WORD *from = (part ? from_v + from_values : from_k + from_keys) + (i * from_layer + head) * width"
)
LAYERED = f"{LANES} PUT(to + d * width + j, from[s * width + j])"
LAYER_BEGIN = "to_head = to_row * heads"
PARTS = "for (i64 z = GROUP(2); z < 2 * heads; z += GROUPS(2))"
LATER_CASTS = "y.y = f16_of(x.z) | f16_of(x.w) << 16;"
HALVED = "part[i] += part[i + by];\n    MEET_NEAR();"

SCORED = "MEET_NEAR();\n          const float highest"
SCORE = "float score = UNSEEN;"
MORE_KEYS = "float score = p >= first && NUMBER(keys[keys_at + ROW(p) * width_k]) == 1234.5f ? 0.0f : UNSEEN;"
SEEN = "if (scores[i] != UNSEEN) a ="
LAST_USE = "MEET_NEAR(); /* before others overwrite what is still read here */"

WRITES_FAR = Planted("a row's width counted twice, writing", "", TARGET, TARGET + " * 64")
READS_FAR = Planted("a row's width counted twice, reading", "", SOURCE, SOURCE + " * 64")
COPIES_FAR = Planted("a slot's width counted twice, copying", "", SLOT, SLOT + " * 64")
COPIES_ALL = Planted(
    "every thread copies the whole row",
    "",
    f"{LANES} {COPIED}",
    f"for (i64 j = 0; j < width; ++j) {COPIED}",
)
READS_LAYERS_FAR = Planted("a layer's place counted twice, reading it", "", GATHERED, GATHERED + " * 64")
SCATTERS_ALL = Planted("every block scatters all heads", "", PARTS, "for (i64 z = 0; z < 2 * heads; ++z)")
EARLY_LENGTH = Planted("a length that changes while others read it", "", "MEET(); /* by now", "/* by now")
EARLY_STEP = Planted(
    "a length that changes while others of its block read it", "", "__syncthreads(); /* by now", "/* by now"
)
NO_BARRIER = Planted("a sum without its barrier", "", HALVED, "part[i] += part[i + by];")
BARRIER_OF_SOME = Planted(
    "a barrier that some threads pass by",
    DIVERGENCE,
    "if (i < by)\n      part[i] += part[i + by];\n    MEET_NEAR();",
    "if (i < by) {\n      part[i] += part[i + by];\n    MEET_NEAR(); }",
)

READS_MORE_KEYS = Planted("keys behind the newest row read, though not used", "", SCORE, MORE_KEYS)
SCORES_UNSEEN = Planted("a tile's maximum before all its scores are there", "", SCORED, "const float highest")
OVERWRITES_SCORES = Planted("scores overwritten while others read them", "", LAST_USE, "")
A_SCORE_TOO_MANY = Planted(
    "a score more than a tile has", "", "i < TILE; i += items) {", "i < TILE + 1; i += items) {"
)


def _wider(written: str) -> str:
    """A row that goes on word after word: a step over what lies behind a block would find another block."""
    return f"{LANES.replace('width', '4096 * width')} {written}"


def _of(planted: Planted, kind: str) -> Planted:
    return Planted(planted.name, kind, planted.old, planted.new)


BUGS = {
    "asan": (
        Planted("a row far wider than it is, written", "write past the end", ACROSS, _wider("d[j] = s[j % width]")),
        Planted(
            "a row far wider than it is, copied",
            "write past the end",
            f"{LANES} {COPIED}",
            _wider("d[j] = CONVERT(s[j % width])"),
        ),
        Planted(
            "a row far wider than it is, read to be copied",
            "read past the end",
            f"{LANES} {COPIED}",
            _wider("d[j % width] = CONVERT(s[j])"),
        ),
        Planted(
            "a row far wider than it is, into a layer",
            "write past the end",
            LAYERED,
            _wider("to[d * width + j] = from[s * width + j % width]"),
        ),
        Planted("lengths of more layers than there are", "read past the end", "l < all;", "l < 64 * all;"),
        Planted("a sum that begins one word late", "read past the end", "* 64 + i]", "* 64 + i + 1]"),
        Planted("a last line that is not cut off", "write past the end", "if (i < words) to[i]", "to[i]"),
        Planted(
            "a buffer filled from too early on", "write before the beginning", "words) to[i]", "words) to[i - 8]"
        ),
        Planted("a shared array one too short", "write outside shared memory", "part[64]", "part[63]"),
        _of(A_SCORE_TOO_MANY, "write outside shared memory"),
        Planted("an output too many", "write past the end", "unit < units;", "unit < units + 1;"),
        Planted("a block released too early", "read after release"),
        Planted("zeros in a guard band", DIFFERENCE, "i < values_end)) to[i] = 0", "i <= values_end)) to[i] = 0"),
        Planted("a shared array not filled", DIFFERENCE, "part[i] = from[GROUP(0) * 64 + i];", ""),
        BARRIER_OF_SOME,
    ),
    "tsan": (
        Planted(
            "every thread writes the whole row",
            "race within a block",
            ACROSS,
            "for (i64 j = 0; j < width; ++j) d[j] = s[j]",
        ),
        Planted(
            "every block writes all heads",
            "race between blocks",
            HEADS,
            "for (i64 head = 0; head < heads; ++head)",
        ),
        Planted(
            "every thread writes the whole row of a layer",
            "race within a block",
            LAYERED,
            "for (i64 j = 0; j < width; ++j) to[d * width + j] = from[s * width + j]",
        ),
        _of(COPIES_ALL, "race within a block"),
        _of(SCATTERS_ALL, "race between blocks"),
        _of(NO_BARRIER, "race within a block"),
        _of(EARLY_LENGTH, "race within a block"),
        _of(SCORES_UNSEEN, "race within a block"),
        _of(OVERWRITES_SCORES, "race within a block"),
        Planted(
            "every thread writes what a part comes to", "race within a block", "if (item == 0) part[0]", "part[0]"
        ),
        Planted(
            "no fence before the count of those done", "race between blocks", "64];\n  __threadfence();", "64];"
        ),
    ),
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
        _of(EARLY_STEP, "race within a block"),
        Planted("every warp does all heads", "race within a block", "head = threadIdx.y;", "head = 0;"),
        Planted("a page noted by every thread", "race within a block", "begun = slot ?", "begun = *its = slot ?"),
        Planted(
            "every block steps all sequences",
            "race between blocks",
            "s = blockIdx.y; s < sequences; s += gridDim.y",
            "s = 0; s < sequences; ++s",
        ),
    ),
    "oclgrind": (
        _of(WRITES_FAR, "write outside global memory"),
        _of(READS_FAR, "read outside global memory"),
        _of(COPIES_FAR, "write outside global memory"),
        _of(READS_LAYERS_FAR, "read outside global memory"),
        Planted(
            "a layer's place counted twice, writing to it",
            "write outside global memory",
            LAYER_BEGIN,
            f"{LAYER_BEGIN} * 64",
        ),
        _of(COPIES_ALL, "race within a group in global memory"),
        _of(SCATTERS_ALL, "race between groups in global memory"),
        _of(READS_MORE_KEYS, "read outside global memory"),
        _of(A_SCORE_TOO_MANY, "write outside local memory"),
        _of(SCORES_UNSEEN, "race within a group in local memory"),
        _of(OVERWRITES_SCORES, "race within a group in local memory"),
        Planted("a shared array one too short", "write outside local memory", "part[64]", "part[63]"),
        Planted(
            "every item writes the whole row",
            "race within a group in global memory",
            ACROSS,
            "for (i64 j = 0; j < width; ++j) d[j] = s[j]",
        ),
        Planted(
            "every group writes all heads",
            "race between groups in global memory",
            HEADS,
            "for (i64 head = 0; head < heads; ++head)",
        ),
        _of(NO_BARRIER, "race within a group in local memory"),
        _of(EARLY_LENGTH, "race within a group in global memory"),
        BARRIER_OF_SOME,
    ),
    "oclgrind-uninitialised": (
        Planted(
            "a row that was never written", "uninitialised value", "from_slots + slot)", "from_slots + slot + 1)"
        ),
        Planted(
            "a token that was never handed in", "uninitialised value", TOKEN, TOKEN.replace("t *", "(t + 1) *")
        ),
        Planted("a pair of casts left out", "uninitialised value", LATER_CASTS, ""),
        Planted("a row that is not seen, taken into the sum", "uninitialised value", SEEN, "a ="),
        Planted("a shared array not filled", "uninitialised value", "part[i] = from[GROUP(0) * 64 + i];", ""),
    ),
}
"""By check: what each must catch."""
