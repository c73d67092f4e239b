"""What the tests of the adapters share."""

from __future__ import annotations

import pytest

from support.device import devices


@pytest.fixture(params=devices.RUNTIMES)
def each_runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "ON", request.param)
