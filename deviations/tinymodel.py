"""A random model of gemma2's architecture for llama.cpp: two layers, one with a sliding window. Needs gguf."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import gguf
import llama_cpp as llama
import numpy as np

WORDS, SIZE, HEADS, WIDTH = 32, 64, 2, 16

silent = llama.llama_log_callback(lambda level, text, data: None)
llama.llama_log_set(silent, None)


def load(window: int):
    """Load a model with this window; None if llama.cpp does not load it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.gguf")
        write(path, window)
        return llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())


def write(path: Path, window: int) -> None:
    writer = gguf.GGUFWriter(path, "gemma2")
    writer.add_context_length(4096)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(2)
    writer.add_feed_forward_length(SIZE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(WIDTH)
    writer.add_value_length(WIDTH)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_sliding_window(window)
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(WORDS)
    random, rows = np.random.default_rng(0), HEADS * WIDTH
    matrices = {"attn_q": (rows, SIZE), "attn_k": (rows, SIZE), "attn_v": (rows, SIZE), "attn_output": (SIZE, rows)}
    matrices |= {f"ffn_{name}": (SIZE, SIZE) for name in ("gate", "up", "down")}
    norms = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    shapes = {f"blk.{i}.{name}": shape for i in range(2) for name, shape in matrices.items()}
    for name, shape in {"token_embd": (WORDS, SIZE), **shapes}.items():
        writer.add_tensor(f"{name}.weight", random.standard_normal(shape).astype(np.float32))
    for name in ("output_norm", *(f"blk.{i}.{name}" for i in range(2) for name in norms)):
        writer.add_tensor(f"{name}.weight", np.ones(SIZE, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def open_context(model, whole: bool, sequences: int = 1, rows: int = 64):
    """A context of 4096 cells that all sequences share. It evaluates `rows` rows at once. The layer with the window
    has 4096 cells too if `whole`, else as few as it can.
    """
    params = llama.llama_context_default_params()
    params.n_ctx = params.n_batch = 4096
    params.n_seq_max, params.kv_unified = sequences, True
    params.n_ubatch, params.swa_full, params.flash_attn_type = rows, whole, 0
    params.n_threads = params.n_threads_batch = 1
    return llama.llama_init_from_model(model, params)


def decode(context, *prompts: list[int]) -> int:
    """Decode one batch: tokens of each sequence, behind those it has; 0 is success."""
    batch = llama.llama_batch_init(sum(map(len, prompts)), 0, 1)
    memory = llama.llama_get_memory(context)
    for sequence, tokens in enumerate(prompts):
        first = llama.llama_memory_seq_pos_max(memory, sequence) + 1
        for position, token in enumerate(tokens, first):
            i = batch.n_tokens
            batch.token[i], batch.pos[i] = token, position
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
            batch.logits[i] = position == first + len(tokens) - 1
            batch.n_tokens += 1
    status = llama.llama_decode(context, batch)
    llama.llama_batch_free(batch)
    return status


def logits(context, row: int = -1) -> np.ndarray:
    """The logits of a row of the batch; by default of the last."""
    return np.ctypeslib.as_array(llama.llama_get_logits_ith(context, row), (WORDS,)).copy()
