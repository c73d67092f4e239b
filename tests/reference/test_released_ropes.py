"""The scalings of released models: the reference, the list model and devices against what transformers computes.

`nox -s rope-tables` computes it anew; here is what was frozen.
"""

from __future__ import annotations

import numpy as np
import pytest

from kvgpu.memory import rope_angles as device_angles
from kvref.arithmetic import rope_tables
from kvref.list_model import rope as listed
from kvspec.rope.scaling import LongRoPE
from support.running.rope_bound import AS_TRANSFORMERS, beyond, row
from support.samples.released_ropes import RELEASED, Released, frozen

IDS = [released.name for released in RELEASED]


@pytest.mark.parametrize("released", RELEASED, ids=IDS)
def test_transformers_is_within_the_bound_of_the_reference_and_of_the_list_model(released: Released) -> None:
    calls = frozen(released.name)
    assert [call.positions.tolist() for call in calls] == [np.array(call).tolist() for call in released.calls]
    assert [beyond(released, call) for call in calls] == [""] * len(calls)


@pytest.mark.parametrize("released", RELEASED, ids=IDS)
def test_the_bound_tells_another_factor_and_no_scaling_and_other_sections(released: Released) -> None:
    if released.sections:
        others = "24,20,20" if "i" in released.sections else "16,24,24:interleaved", "20,20,24", "24,16,24"
        wrong = [released._replace(sections=each) for each in others]
        assert all(any(beyond(each, call) for call in frozen(released.name)) for each in wrong)
        return
    plain = released._replace(scaling="none")
    other = released._replace(
        scaling=released.scaling.replace(":4:", ":5:").replace(":8", ":9").replace(":3", ":2")
    )
    wrong = [plain] + [other] * (other.scaling != released.scaling)
    assert all(any(beyond(each, call) for call in frozen(released.name)) for each in wrong)


@pytest.mark.parametrize("released", RELEASED, ids=IDS)
def test_devices_have_the_tables_of_the_reference(released: Released) -> None:
    positions, rope = np.array(sorted({p for call in released.calls for p in np.ravel(call)})), released.rope
    wanted = np.stack(rope_tables.table(positions, released.dims, rope.base, rope.scaling), -1)
    assert device_angles.table(positions, released.dims, rope.base, rope.scaling).tobytes() == wanted.tobytes()


def test_a_list_that_is_chosen_in_another_way_is_told() -> None:
    (released,) = (each for each in RELEASED if isinstance(each.rope.scaling, LongRoPE))
    short, long = frozen(released.name)
    rows = row(released.dims, len(long.positions))
    middles = {
        way: listed.turned(
            listed.exactly(rows, "f32"), long.positions, released.rope, AS_TRANSFORMERS._replace(long=way)
        )
        for way in ("row", "call", "always")
    }
    found = np.concatenate([long.cosines, long.sines], -1)
    within = {way: bool((np.abs(found - m.middle[0, 0]) <= m.bound[0, 0]).all()) for way, m in middles.items()}
    assert within == {"row": False, "call": True, "always": True}
    assert not beyond(released, short)
