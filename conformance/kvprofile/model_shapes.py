"""Shapes of real models. Each comes from the model's published config.json, whose fields are named in `Model`."""

from __future__ import annotations

from typing import NamedTuple


class Model(NamedTuple):
    """The shape of a model's attention."""

    name: str
    heads: int
    """num_attention_heads"""
    kv_heads: int
    """num_key_value_heads"""
    dim: int
    """head_dim, or hidden_size / num_attention_heads"""
    layers: int
    """num_hidden_layers"""
    window: int | None
    """sliding_window, where a case here uses it"""
    source: str
    """The repository of its config.json, or the file that holds the same numbers."""
    value_dim: int = 0
    """kv_lora_rank, where values are the first part of a key; 0 where they are as wide as keys"""

    full_each: int = 0
    """sliding_window_pattern, or the like in layer_types: the last of so many layers sees all; 0 if none does"""

    @property
    def views(self) -> str:
        """Give the view of each layer, as the config of a cache of several layers has them."""
        each = 1 if self.window is None else self.full_each
        full = (bool(each) and layer % each == each - 1 for layer in range(self.layers))
        return ",".join("full" if whole else f"window:{self.window}" for whole in full)

    @property
    def v_dim(self) -> int:
        """Give the elements of a value row."""
        return self.value_dim or self.dim

    @property
    def id(self) -> str:
        """Give its name in the ids of cases."""
        return self.name.replace(" ", "-").lower()


LLAMA_8B = Model("Llama-3.1-8B", 32, 8, 128, 32, None, "huggingface.co/meta-llama/Llama-3.1-8B")
LLAMA_70B = Model("Llama-3.1-70B", 64, 8, 128, 80, None, "huggingface.co/meta-llama/Llama-3.1-70B")
QWEN = Model("Qwen2.5-7B", 28, 4, 128, 28, None, "huggingface.co/Qwen/Qwen2.5-7B")
MISTRAL = Model("Mistral-7B-v0.1", 32, 8, 128, 32, 4096, "huggingface.co/mistralai/Mistral-7B-v0.1")
GEMMA = Model("Gemma-2-9B", 16, 8, 256, 42, 4096, "github.com/google/gemma_pytorch, gemma/config.py", full_each=2)
PHI = Model("Phi-3-mini-4k", 32, 32, 96, 32, None, "huggingface.co/microsoft/Phi-3-mini-4k-instruct")
GPT2 = Model("GPT-2 small", 12, 12, 64, 12, None, "huggingface.co/openai-community/gpt2")
QWEN3_8B = Model("Qwen3-8B", 32, 8, 128, 36, None, "huggingface.co/Qwen/Qwen3-8B")
QWEN3_30B = Model("Qwen3-30B-A3B", 32, 4, 128, 48, None, "huggingface.co/Qwen/Qwen3-30B-A3B")
QWEN3_235B = Model("Qwen3-235B-A22B", 64, 4, 128, 94, None, "huggingface.co/Qwen/Qwen3-235B-A22B")
GEMMA3_4B = Model("Gemma-3-4B", 8, 4, 256, 34, 1024, "huggingface.co/google/gemma-3-4b-it", full_each=6)
GEMMA3_27B = Model("Gemma-3-27B", 32, 16, 128, 62, 1024, "huggingface.co/google/gemma-3-27b-it", full_each=6)
GPT_OSS = Model("gpt-oss-120b", 64, 8, 64, 36, 128, "huggingface.co/openai/gpt-oss-120b", full_each=2)
LLAMA4 = Model("Llama-4-Scout", 40, 8, 128, 48, None, "huggingface.co/meta-llama/Llama-4-Scout-17B-16E")
DEEPSEEK = Model("DeepSeek-V3", 128, 1, 576, 61, None, "huggingface.co/deepseek-ai/DeepSeek-V3", 512)
"""Its latent rows, as a decode attends to them: kv_lora_rank + qk_rope_head_dim wide, one for all heads."""

MODELS = (
    *(LLAMA_8B, LLAMA_70B, QWEN, MISTRAL, GEMMA, PHI, GPT2),
    *(QWEN3_8B, QWEN3_30B, QWEN3_235B, GEMMA3_4B, GEMMA3_27B, GPT_OSS, LLAMA4, DEEPSEEK),
)
"""All models: 1 to 32 key-value heads, rows of 64 to 576 elements, 1 to 128 query heads per key-value head."""
