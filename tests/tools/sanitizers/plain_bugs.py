"""Bugs of the plain kernels, in OpenCL and in CUDA: what each tool must catch."""

from __future__ import annotations

from tools.sanitizers.findings import DIFFERENCE, DIVERGENCE
from tools.sanitizers.planted import Planted, of_kind

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


PLAIN = {
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
        of_kind(A_SCORE_TOO_MANY, "write outside shared memory"),
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
        of_kind(COPIES_ALL, "race within a block"),
        of_kind(SCATTERS_ALL, "race between blocks"),
        of_kind(NO_BARRIER, "race within a block"),
        of_kind(EARLY_LENGTH, "race within a block"),
        of_kind(SCORES_UNSEEN, "race within a block"),
        of_kind(OVERWRITES_SCORES, "race within a block"),
        Planted(
            "every thread writes what a part comes to", "race within a block", "if (item == 0) part[0]", "part[0]"
        ),
        Planted(
            "no fence before the count of those done", "race between blocks", "64];\n  __threadfence();", "64];"
        ),
    ),
    "oclgrind": (
        of_kind(WRITES_FAR, "write outside global memory"),
        of_kind(READS_FAR, "read outside global memory"),
        of_kind(COPIES_FAR, "write outside global memory"),
        of_kind(READS_LAYERS_FAR, "read outside global memory"),
        Planted(
            "a layer's place counted twice, writing to it",
            "write outside global memory",
            LAYER_BEGIN,
            f"{LAYER_BEGIN} * 64",
        ),
        of_kind(COPIES_ALL, "race within a group in global memory"),
        of_kind(SCATTERS_ALL, "race between groups in global memory"),
        of_kind(READS_MORE_KEYS, "read outside global memory"),
        of_kind(A_SCORE_TOO_MANY, "write outside local memory"),
        of_kind(SCORES_UNSEEN, "race within a group in local memory"),
        of_kind(OVERWRITES_SCORES, "race within a group in local memory"),
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
        of_kind(NO_BARRIER, "race within a group in local memory"),
        of_kind(EARLY_LENGTH, "race within a group in global memory"),
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
