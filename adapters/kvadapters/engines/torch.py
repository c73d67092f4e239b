"""Adapters of the engines that are built on torch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import torch

from kvadapters.update import UpdateAdapter, from_update

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def adapter(name: str, engine: str, limits: Mapping[str, Any] | None = None, **given: Any) -> UpdateAdapter:
    """Make the adapter of a cache of this engine, a package that is installed; see `from_update`."""
    said: dict[str, Any] = {"version": version(engine), "details": {"torch": str(torch.__version__)}}
    said |= {"limits": limits} if limits else {}
    return from_update(name, arrays="torch", said=said, **given)
