"""Finds adapters by name: a built-in, an entry point of group `kvconform.adapters`, or `module:Class`."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kvspec.contract import Adapter
from kvspec.errors import BadInput, CannotRun
from kvspec.outside import did_you_mean

BUILT_IN = {
    "reference": "kvadapters.reference:Reference",
    "opencl": "kvgpu.adapters:OpenCL",
    "opencl-fast": "kvgpu.adapters:OpenCLFast",
    "cuda-cpu": "kvgpu.adapters:CudaCPU",
    "cuda-cpu-fast": "kvgpu.adapters:CudaCPUFast",
    "cupy": "kvgpu.adapters:CuPy",
    "cupy-fast": "kvgpu.adapters:CuPyFast",
}
"""Built-in adapters, found without installation, so that a bare checkout works."""

ENGINES = {
    "mlx-growing": "kvadapters.engines.mlx.caches:growing",
    "mlx-concatenate": "kvadapters.engines.mlx.caches:concatenate",
    "mlx-chunked": "kvadapters.engines.mlx.caches:chunked",
    "mlx-rotating": "kvadapters.engines.mlx.caches:rotating",
    "mlx-rotating-keep": "kvadapters.engines.mlx.caches:rotating_keep",
    "mlx-batch": "kvadapters.engines.mlx.caches:batch",
    "mlx-batch-rotating": "kvadapters.engines.mlx.caches:batch_rotating",
    "mlx-ragged": "kvadapters.engines.mlx.ragged:ragged",
    "mlx-attention": "kvadapters.engines.mlx.attention:attention",
    "mlx-keyed": "kvadapters.engines.mlx.prompts:keyed",
    "mlx-layers": "kvadapters.engines.mlx.layers:layers",
    "mlxvlm-growing": "kvadapters.engines.mlx.vlm:growing",
    "mlxvlm-concatenate": "kvadapters.engines.mlx.vlm:concatenate",
    "mlxvlm-simple": "kvadapters.engines.mlx.vlm:simple",
    "mlxvlm-static-prefix": "kvadapters.engines.mlx.vlm:static_prefix",
    "mlxvlm-chunked": "kvadapters.engines.mlx.vlm:chunked",
    "mlxvlm-rotating": "kvadapters.engines.mlx.vlm:rotating",
    "mlxvlm-rotating-keep": "kvadapters.engines.mlx.vlm:rotating_keep",
    "mlxvlm-buffered": "kvadapters.engines.mlx.vlm:buffered_rotating",
    "mlxvlm-batch": "kvadapters.engines.mlx.vlm:batch",
    "mlxvlm-ragged": "kvadapters.engines.mlx.vlm:ragged",
    "mlxvlm-batch-rotating": "kvadapters.engines.mlx.vlm:batch_rotating",
    "mlxvlm-layers": "kvadapters.engines.mlx.vlm:layers",
    "transformers-dynamic": "kvadapters.engines.transformers.caches:growing",
    "transformers-sliding": "kvadapters.engines.transformers.caches:sliding",
    "transformers-static": "kvadapters.engines.transformers.caches:bounded",
    "transformers-keyed": "kvadapters.engines.transformers.batching.keyed:keyed",
    "transformers-paged": "kvadapters.engines.transformers.batching.paged:paged",
    "transformers-store": "kvadapters.engines.transformers.store:store",
    "transformers-static-sliding": "kvadapters.engines.transformers.caches:static_sliding",
    "transformers-batch": "kvadapters.engines.transformers.batch:ragged",
    "transformers-batch-static": "kvadapters.engines.transformers.batches:static",
    "transformers-batch-quantized": "kvadapters.engines.transformers.batches:quantized_fp8",
    "transformers-batch-encoder-decoder": "kvadapters.engines.transformers.batches:encoded",
    "transformers-batch-hybrid": "kvadapters.engines.transformers.batches:hybrid",
    "transformers-batch-linear": "kvadapters.engines.transformers.batches:linear",
    "transformers-padded": "kvadapters.engines.transformers.padded:padded",
    "transformers-encoder-decoder": "kvadapters.engines.transformers.parts:encoder_decoder",
    "transformers-sparse": "kvadapters.engines.transformers.parts:sparse_dynamic",
    "transformers-indexed": "kvadapters.engines.transformers.parts:indexed_dynamic",
    "transformers-static-indexed": "kvadapters.engines.transformers.parts:indexed_bounded",
    "transformers-quantized-fp8": "kvadapters.engines.transformers.quantized:fp8",
    "transformers-layers": "kvadapters.engines.transformers.layers:layers",
    "transformers-layers-drafts": "kvadapters.engines.transformers.layers:layers_drafts",
    "transformers-layers-recording": "kvadapters.engines.transformers.layers:layers_recording",
    "transformers-layers-static": "kvadapters.engines.transformers.layers:layers_static",
    "transformers-hybrid-static-recording": "kvadapters.engines.transformers.layers:hybrid_static_recording",
    "transformers-layers-encoder-decoder": "kvadapters.engines.transformers.encoder:layers_encoder_decoder",
    "transformers-mllama": "kvadapters.engines.transformers.encoder:layers_mllama",
    "transformers-minimax": "kvadapters.engines.transformers.minimax:minimax",
    "transformers-sdpa": "kvadapters.engines.transformers.attention:sdpa",
    "transformers-rope": "kvadapters.engines.transformers.attention:rope",
    "transformers-gemma2": "kvadapters.engines.transformers.attention:gemma2",
    "transformers-gpt-oss": "kvadapters.engines.transformers.attention:gpt_oss",
    "transformers-joined": "kvadapters.engines.transformers.joined:joined",
    "onnx-attention": "kvadapters.engines.onnx.attention:growing",
    "onnx-attention-window": "kvadapters.engines.onnx.attention:window",
    "onnx-scatter": "kvadapters.engines.onnx.attention:scatter",
    "onnx-copy": "kvadapters.engines.onnx.attention:copy",
    "onnxruntime-copy": "kvadapters.engines.onnxruntime.caches:copy",
    "onnxruntime-attention": "kvadapters.engines.onnxruntime.caches:growing",
    "onnxruntime-scatter": "kvadapters.engines.onnxruntime.caches:scatter",
    "onnxruntime-gqa": "kvadapters.engines.onnxruntime.caches:grouped",
    "onnxruntime-gqa-window": "kvadapters.engines.onnxruntime.caches:grouped_window",
    "onnxruntime-gqa-attention": "kvadapters.engines.onnxruntime.attention:growing",
    "onnxruntime-gqa-shared": "kvadapters.engines.onnxruntime.caches:grouped_shared",
    "onnxruntime-gqa-forms": "kvadapters.engines.onnxruntime.forms:growing",
    "onnxruntime-gqa-window-forms": "kvadapters.engines.onnxruntime.forms:window",
    "onnxruntime-gqa-shared-forms": "kvadapters.engines.onnxruntime.forms:shared",
    "onnxruntime-gqa-evicting": "kvadapters.engines.onnxruntime.window:window",
    "litgpt": "kvadapters.engines.litgpt:bounded",
    "litgpt-sliding": "kvadapters.engines.litgpt:sliding",
    "executorch": "kvadapters.engines.executorch.caches:bounded",
    "executorch-ring": "kvadapters.engines.executorch.caches:ring",
    "executorch-sink": "kvadapters.engines.executorch.sinks:sink",
    "openvino": "kvadapters.engines.openvino:growing",
    "vllm-joined": "kvadapters.engines.vllm.joined:joined",
    "vllm-keyed": "kvadapters.engines.vllm.keyed:keyed",
    "vllm-bounded": "kvadapters.engines.vllm.bounded:bounded",
    "sglang-keyed": "kvadapters.engines.sglang.keyed:keyed",
    "sglang-bounded": "kvadapters.engines.sglang.bounded:bounded",
    "lmcache-keyed": "kvadapters.engines.lmcache:keyed",
    "torch-paged": "kvadapters.engines.torch_paged:paged",
    "torchtune": "kvadapters.engines.torchtune:bounded",
    "torchtune-cross": "kvadapters.engines.torchtune_cross:layers",
    "torchtune-store": "kvadapters.engines.torchtune:store",
    "flax": "kvadapters.engines.flax:bounded",
    "easydel-batch": "kvadapters.engines.easydel:batch",
    "tvm-growing": "kvadapters.engines.tvm.growing:growing",
    "tvm-paged": "kvadapters.engines.tvm.paged:paged",
    "tvm-batch": "kvadapters.engines.tvm.batch:batch",
    "whisper": "kvadapters.engines.whisper:layers",
    "llama-growing": "kvadapters.engines.llama.caches:growing",
    "llama-window": "kvadapters.engines.llama.caches:window",
    "llama-window-tight": "kvadapters.engines.llama.caches:tight",
}
"""Adapters of released engines: one name for each class of cache. The extras install the engines."""

GROUP = "kvconform.adapters"
"""The entry point group in which other distributions name their adapters."""


def names() -> dict[str, str]:
    """Give every adapter known by name, and its place as `module:attribute`."""
    from importlib import metadata  # takes longer to import than anything else here

    others = {e.name: e.value for e in metadata.entry_points(group=GROUP)}
    return others | ENGINES | BUILT_IN


def load(name: str) -> Adapter:
    """Load the adapter of that name, or at `module:Class`, `module:attribute.path`, `module:factory`.

    Raises BadInput if there is none or it cannot be imported, CannotRun if the adapter raises it.
    """
    target = BUILT_IN.get(name) or names().get(name, name)
    if ":" not in target:
        raise BadInput(_unknown(name))
    if not all(target.partition(":")):
        raise BadInput(f"{name!r} lacks its module or its class; write module:Class")
    found = guarded(name, "cannot be imported", lambda: _attribute(name, target))
    if isinstance(found, type) or not _is_adapter(found):
        found = guarded(name, "cannot be made", lambda: _made(name, found))
    for method in ("describe", "open"):
        if not callable(getattr(found, method, None)):
            raise BadInput(f"{name}: not an adapter, it has no {method}(); see kvspec.contract.Adapter")
    adapter: Adapter = found
    return adapter


def _attribute(name: str, target: str) -> Any:
    """Import what stands at `module:attribute.path`. Raises BadInput if it is not there."""
    module, _, path = target.partition(":")
    with suppress(FileNotFoundError):  # the working folder may be gone
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.append(os.getcwd())
    found: Any = _module(name, module)
    for attribute in path.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError as e:
            raise BadInput(f"{name}: {_line(e)}{did_you_mean(attribute, dir(found))}") from e
    return found


def _module(name: str, module: str) -> Any:
    """Import a module. Raises BadInput if there is none of that name; the module's own errors pass."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        if not f"{module}.".startswith(f"{e.name}."):
            raise  # it is there, and imports what is not
        folder = "run in the folder that holds it, or install it"
        raise BadInput(f"{name}: cannot be imported: {_line(e)}; {folder}") from None


def _made(name: str, found: Any) -> Any:
    if not callable(found):
        raise BadInput(f"{name}: neither an adapter nor a class or function that makes one, but {found!r:.60}")
    return found()


def _is_adapter(found: Any) -> bool:
    return hasattr(found, "describe") and hasattr(found, "open")


def guarded(name: str, failing: str, work: Callable[[], Any]) -> Any:
    """Run the adapter's own code: any exception becomes BadInput of one line."""
    try:
        return work()
    except (BadInput, CannotRun):
        raise
    except (Exception, SystemExit) as e:
        raise BadInput(f"{name}: {failing}: {type(e).__name__}: {_line(e)}{_place(e)}") from e


def _line(e: BaseException) -> str:
    return " ".join(str(e).split())


def _place(e: BaseException) -> str:
    """Give the place where it was raised, unless that is this file or the import system."""
    last = traceback.extract_tb(e.__traceback__)[-1]
    known = last.filename == __file__ or last.filename.startswith("<frozen")
    return "" if known else f" ({os.path.basename(last.filename)}:{last.lineno})"


def _unknown(name: str) -> str:
    """Say what to name instead: near names, or for a file its module."""
    unknown = f"unknown adapter {name!r:.60}"
    if meant := did_you_mean(name, names()):
        return unknown + meant
    if name.endswith(".py"):
        folder, file = os.path.split(name)
        where = f" in the folder {folder}" if folder else ""
        return f"{unknown}: for an adapter in a file, name module:Class, such as {file[:-3]}:Adapter{where}"
    if os.path.isfile(name):
        return f"{unknown}: for an engine in any language, put its command after --, such as -- {name}"
    return f"{unknown}; `kvconform list adapters` names all, and module:Class names your own"
