"""The spec's formula for bytes, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from kvconform.profiling import cases
from kvconform.profiling.jobs import OPERATIONS
from kvspec import traffic
from kvspec.geometry import Config
from kvspec.traffic import Traffic

ROW = Config(batch=2, kv_heads=8, k_dim=128, v_dim=64, dtype="f16")
"""A position has 2 x 8 x (128 + 64) x 2 = 6,144 bytes."""

STORE = Config(kv_heads=4, k_dim=128, v_dim=128, dtype="f32", layers=28, max_len=100)
"""A position of one layer has 4 x 256 x 4 = 4,096 bytes."""


@pytest.mark.parametrize(
    ("found", "by_hand"),
    [
        (traffic.moved(ROW, 512), Traffic(3_145_728, 3_145_728, "copy")),
        (traffic.grown(ROW, 1000, 1), Traffic(6_150_144, 6_150_144, "copy")),
        (traffic.cast(Config(kv_heads=8, k_dim=128, v_dim=128, dtype="f16"), "f32", 10), Traffic(81_920, 40_960)),
        (traffic.layered(STORE, 1), Traffic(114_688, 114_688)),
        (traffic.layered(STORE, 3, 8), Traffic(2_752_512, 2_752_512)),
        (traffic.zeroed(STORE), Traffic(0, 11_468_800, "write")),
        (traffic.NOTHING, Traffic(0, 0, None)),
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


def test_bytes_are_both_directions() -> None:
    assert Traffic(3, 4).bytes == 7


def test_every_case_has_traffic_that_its_limit_goes_with() -> None:
    """A case held against the write limit reads nothing, one against the read limit reads most."""
    for case in (*cases.table(), *cases.QUICK):
        found = OPERATIONS[case.operation].traffic(case)
        assert (found.bytes == 0) == (found.limit is None), case.id
        assert found.limit != "write" or found.read == 0, case.id
        assert found.limit != "read" or found.read > 10 * found.written, case.id


def test_ids_name_one_case_each() -> None:
    for some in (cases.table(), cases.QUICK):
        assert len({case.id for case in some}) == len(some)


def test_a_case_says_its_shape_in_its_id() -> None:
    ids = {case.id for case in cases.table()}
    assert {"append/llama-3.1-8b/f16/32768/n512", "copy/llama-3.1-8b/f32-bf16/32768/n512/head"} <= ids
