"""The settings that SGLang's tree and pools ask for, where no server has set them."""

from __future__ import annotations

from kvspec.errors import CannotRun

try:
    from sglang.srt.runtime_context import get_context, get_parallel
except ImportError as e:
    raise CannotRun(f"SGLang cannot be imported ({e}); nox -s engines-sglang-keyed installs it") from e


def settings() -> None:
    """Give SGLang the settings that its tree and its pools ask for."""
    backends = dict.fromkeys(("attention_backend", "prefill_attention_backend"), "torch_native")
    get_context().override_server_args(device="cpu", skip_tokenizer_init=True, **backends).install()
    get_parallel().override_permanently(dp_rank=None)
