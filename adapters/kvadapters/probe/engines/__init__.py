"""Engines that `kvconform ask` knows by name, one file each: a function that loads a probe from a folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kvadapters.probe.model import Model
from kvspec.errors import BadInput, CannotRun

ENGINES = {
    "transformers": "kvadapters.probe.engines.transformers:dynamic",
    "transformers-static": "kvadapters.probe.engines.transformers:static",
    "mlx-lm": "kvadapters.probe.engines.mlx_lm:load",
    "onnxruntime": "kvadapters.probe.engines.onnxruntime:load",
    "llama-cpp": "kvadapters.probe.engines.llama_cpp:streams",
    "llama-cpp-unified": "kvadapters.probe.engines.llama_cpp:unified",
    "llama-cpp-q8_0": "kvadapters.probe.engines.llama_cpp:q8_0",
    "llama-cpp-q4_0": "kvadapters.probe.engines.llama_cpp:q4_0",
}
"""A name, and the function that it stands for."""

DISTRIBUTIONS = {"llama-cpp": "llama-cpp-python", "transformers": "transformers"}
"""The distributions of engines with several names, by how these begin."""

PACKAGES = {name: next((d for e, d in DISTRIBUTIONS.items() if name.startswith(e)), name) for name in ENGINES}


def loaded(name: str, folder: str, dtype: str) -> Model:
    """Load the probe of a folder into an engine: a name, or module:function. Raises BadInput or CannotRun."""
    if ":" not in ENGINES.get(name, name):
        raise BadInput(f"unknown engine {name!r}; there are {', '.join(ENGINES)}, and module:function for your own")
    model = made(name, ENGINES.get(name, name), folder, dtype)
    if not isinstance(model, Model):
        raise BadInput(f"{name} gives a {type(model).__name__}; it must give what from_model makes")
    return model


def made(name: str, target: str, *arguments: Any) -> Any:
    """Call the function of an engine, `target` as module:function. A named engine's target is another than its
    name. Raises BadInput, or CannotRun where the package of a named engine is missing."""
    module, _, function = target.partition(":")
    try:
        load: Callable[..., Any] = getattr(import_module(module), function)
    except ModuleNotFoundError as e:
        if name != target:
            extra = re.sub("[-_](static|batching|unified|q8_0|q4_0)$", "", name).replace("_", "-")
            raise CannotRun(f"{name} needs {e.name}: pip install 'kvconform[{extra}]'") from None
        raise BadInput(f"{name}: cannot be imported ({e})") from None
    except (ImportError, AttributeError) as e:
        raise BadInput(f"{name}: cannot be imported ({e})") from None
    try:
        return load(*arguments)
    except BadInput:
        raise
    except (OSError, ValueError, KeyError, TypeError) as e:
        said = " ".join(f"{type(e).__name__}: {e}".split())[:300]
        raise BadInput(f"{name} cannot load {' in '.join(map(str, arguments))} ({said})") from None
