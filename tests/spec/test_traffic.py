"""The spec's formula for bytes, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from kvprofile import cases
from kvprofile.workloads import OPERATIONS
from kvspec import traffic
from kvspec.geometry import Config
from kvspec.traffic import Traffic

ROW = Config(batch=2, kv_heads=8, k_dim=128, v_dim=64, dtype="f16")
"""A position has 2 x 8 x (128 + 64) x 2 = 6,144 bytes, and in q8_0 2 x 8 x (4 + 2) x 34 = 3,264."""

STORE = Config(kv_heads=4, k_dim=128, v_dim=128, dtype="f32", layers=28, max_len=100)
"""A position of one layer has 4 x 256 x 4 = 4,096 bytes."""


@pytest.mark.parametrize(
    ("found", "by_hand"),
    [
        (traffic.moved(ROW, 512), Traffic(3_145_728, 3_145_728, "copy")),
        (traffic.appended(ROW, 512), Traffic(3_145_728, 3_145_728, "copy")),
        (traffic.appended(ROW.changed(form="q8_0"), 512), Traffic(3_145_728, 1_671_168, "copy")),
        (traffic.downloaded(ROW.changed(form="q8_0"), 512), Traffic(1_671_168, 3_145_728, "download")),
        (traffic.moved(ROW.changed(form="q8_0"), 512), Traffic(1_671_168, 1_671_168, "copy")),
        (traffic.grown(ROW, 1000, 1), Traffic(6_150_144, 6_150_144, "copy")),
        (traffic.cast(Config(kv_heads=8, k_dim=128, v_dim=128, dtype="f16"), "f32", 10), Traffic(81_920, 40_960)),
        (traffic.layered(STORE, 1), Traffic(114_688, 114_688)),
        (traffic.layered(STORE, 3, 8), Traffic(2_752_512, 2_752_512)),
        (traffic.zeroed(STORE), Traffic(0, 11_468_800, "write")),
        (traffic.NOTHING, Traffic(0, 0, None)),
        (traffic.forked(ROW, 8, 1), Traffic(55_296, 55_296)),
        (traffic.forked(ROW, 32, 512), Traffic(3_342_336, 3_342_336)),
        (traffic.layered(STORE.changed(batch=2), 513), Traffic(117_669_888, 117_669_888)),
        (traffic.turned(ROW, 512), Traffic(2_097_152, 2_097_152)),
        (traffic.turned(STORE.changed(batch=1), 1), Traffic(2_048, 2_048)),
    ],
)
def test_bytes_are_those_worked_out_by_hand(found: Traffic, by_hand: Traffic) -> None:
    assert found == by_hand


def test_attention_reads_rows_once_for_all_heads_of_a_group() -> None:
    """One query of each of 32 heads over 4,097 rows of 8 heads, one of them new, f16, dims of 128.

    Rows 4,097 x 4,096 B and the new one 4,096 B; queries and output 32 x 128 x 4 B = 16,384 B each.
    """
    config = Config(kv_heads=8, k_dim=128, v_dim=128, dtype="f16")
    found = traffic.attended(config, 32, 1, 4097)
    assert found.read == 4097 * 4096 + 4096 + 16_384 and found.written == 16_384 + 4096
    assert found.limit == "read" and found.flops == 2 * 32 * 4097 * 256
    assert traffic.attended(config, 64, 1, 4097).read - found.read == 16_384, "twice the heads, the same rows"
    assert traffic.attended(config.changed(batch=8), 32, 1, 4097).read == 8 * found.read


def test_queries_alone_are_attention_without_the_new_rows() -> None:
    """8 sequences of 1,024 rows of 8 heads, f16, dims of 128: 8 x 1,024 x 4,096 B = 33,554,432 B; a query of each
    of 32 heads is 8 x 32 x 128 x 4 B = 131,072 B, and so is its output."""
    config = Config(batch=8, kv_heads=8, k_dim=128, v_dim=128, dtype="f16")
    found = traffic.asked(config, 32, 1, 1024)
    assert found == Traffic(33_554_432 + 131_072, 131_072, "read", 2 * 8 * 32 * 1024 * 256)
    appended = traffic.attended(config, 32, 1, 1024)
    assert (appended.read - found.read, appended.written - found.written) == (32_768, 32_768)
    assert appended.flops == found.flops


def test_a_graph_works_on_the_rows_of_all_layers() -> None:
    """28 layers of 4,096 B a position; with two sequences twice as many."""
    assert traffic.stacked(STORE).row_bytes == 114_688
    assert traffic.stacked(STORE.changed(batch=2)).row_bytes == 229_376


CASES = {case.id: case for case in cases.cases()}
BY_HAND = {
    "page append/llama-3.1-8b/f16/4096/n512/p16": Traffic(2_097_152, 2_097_152),
    "gather/llama-3.1-8b/f16/4096/p64": Traffic(16_777_216, 16_777_216, "download"),
    "fork/llama-3.1-8b/f16/4096/p16": Traffic(9 * 4096, 9 * 4096),
    "fork/llama-3.1-8b/f16/4096/p64": Traffic(33 * 4096, 33 * 4096),
    "paged attention/llama-3.1-8b/f16/4096/p16": Traffic(
        4096 * 4096 + 4096 + 16_384, 4096 + 16_384, "read", 2 * 32 * 4096 * 256
    ),
    "batch attention/llama-3.1-8b/f16/1024/b8": Traffic(33_685_504, 131_072, "read", 134_217_728),
    "captured attention/llama-3.1-8b/f16/1024": Traffic(
        1024 * 4096 + 4096 + 16_384, 4096 + 16_384, "read", 2 * 32 * 1024 * 256
    ),
    "bucket decode/gpt-2-small/f16/1024": Traffic(
        1008 * 36_864 + 36_864 + 36_864, 36_864 + 36_864, "read", 2 * 144 * 1008 * 128
    ),
    "bucket block/gpt-2-small/f16/1024/n4": Traffic(
        1028 * 36_864 + 4 * 36_864 + 4 * 36_864, 8 * 36_864, "read", 2 * 144 * 4 * 1028 * 128
    ),
    "bucket crossing/gpt-2-small/f16/512": Traffic(513 * 36_864, 513 * 36_864),
    "bucket sync/gpt-2-small/f16/1024": Traffic(1024 * 36_864, 1024 * 36_864, "download"),
    "encode/gpt-2-small/f16/1024": Traffic(1024 * 36_864, 1024 * 36_864),
    "cross attention/gpt-2-small/f16/1024": Traffic(1024 * 36_864 + 36_864, 36_864, "read", 2 * 144 * 1024 * 128),
    "rotate/llama-3.1-8b/f16/4096/n512/norm": Traffic(1_048_576, 1_048_576),
}
"""Llama has rows of 2 x 8 x 128 x 2 = 4,096 B, and of 32 x 128 x 4 = 16,384 B of queries. GPT-2 has 12 layers of 12
heads: rows of 12 x 2 x 12 x 64 x 2 = 36,864 B, and, by chance, as many of queries, 12 x 12 x 64 x 4."""


@pytest.mark.parametrize("name", BY_HAND)
def test_cases_are_counted_as_worked_out_by_hand(name: str) -> None:
    """A step below a bound sees, in the middle of 33, 16 rows fewer than the bound has."""
    assert OPERATIONS[CASES[name].operation].traffic(CASES[name]) == BY_HAND[name]


def test_bytes_are_both_directions() -> None:
    assert Traffic(3, 4).bytes == 7


def test_every_case_has_traffic_that_its_limit_goes_with() -> None:
    """A case held against the write limit reads nothing, one against the read limit reads most."""
    for case in (*cases.cases(), *cases.cases("quick"), *cases.cases("models")):
        found = OPERATIONS[case.operation].traffic(case)
        assert (found.bytes == 0) == (found.limit is None), case.id
        assert found.limit != "write" or found.read == 0, case.id
        prefill = case.rows > 64  # computes rather than reads: its share of the limit is small by nature
        assert found.limit != "read" or found.read > 10 * found.written or prefill, case.id


def test_ids_name_one_case_each() -> None:
    for some in (cases.cases(), cases.cases("quick"), cases.cases("models")):
        assert len({case.id for case in some}) == len(some)


def test_a_case_says_its_shape_in_its_id() -> None:
    ids = {case.id for case in cases.cases()}
    assert {"append/llama-3.1-8b/f16/32768/n512", "copy/llama-3.1-8b/f32-bf16/32768/n512/head"} <= ids
    assert {"page append/llama-3.1-8b/f16/4096/p16", "rope attention/llama-3.1-8b/f16/4096/neox"} <= ids
