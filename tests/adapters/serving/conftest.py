"""What tests of engines that serve requests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the module's `PROBE`, written once, in its `FORMAT` if it has one."""
    into = tmp_path_factory.mktemp("probe")
    request.module.PROBE.write(into, file_format=getattr(request.module, "FORMAT", "safetensors"))
    return into
