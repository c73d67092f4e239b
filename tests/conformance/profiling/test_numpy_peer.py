"""The numpy peer: it does the work of every operation, and attends as the formula says."""

from __future__ import annotations

import numpy as np
import pytest

from kvprofile.case import Case
from kvprofile.model_shapes import GPT2
from kvprofile.peers import host_arrays
from kvprofile.peers.numpy_peer import Arrays, Numpy
from kvprofile.random_rows import noise
from kvprofile.workloads import OPERATIONS


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o not in ("rewind", "layers append")])
def test_the_peers_do_the_work_of_every_operation_that_they_have(operation: str) -> None:
    rows = 2 if operation in ("copy", "scatter") else 1
    case = Case(operation, GPT2, 64, rows, layout="token", page=16, pairing="neox")
    job = Numpy().job(case, 1 << 16)
    assert job is not None
    job.do(0)
    job.do(1)


def test_the_numpy_peer_attends_as_the_formula_says() -> None:
    """Two queries of two heads that share a row's head, over three rows: each by its own sum of exponentials."""
    q, k, v = (noise(shape, "f32", i) for i, shape in enumerate([(1, 2, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4)]))
    found = Arrays().attend(q, k, v)
    for head in range(2):
        for i in range(2):
            seen = 2 + i
            weights = np.exp(k[0, 0, :seen] @ q[0, head, i] / 2)
            assert np.allclose(found[0, head, i], weights @ v[0, 0, :seen] / weights.sum(), atol=1e-6)


def test_a_peer_writes_where_the_cache_would() -> None:
    rows = host_arrays.Rows(Arrays(), Case("append", GPT2, 4, 2), 1)
    targets = rows.caches(8)
    before = [a.copy() for a in targets[0]]
    new = rows.caches(2)[0]
    rows.write(targets[0], 2, 4, new)
    for target, old, written in zip(targets[0], before, new, strict=True):
        assert np.array_equal(target[:, :, 4:6], written)
        assert np.array_equal(np.delete(target, [4, 5], 2), np.delete(old, [4, 5], 2))
