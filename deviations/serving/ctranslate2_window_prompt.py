"""CTranslate2, a window: a prompt longer than it, computed at once, gives wrong logits. A wrong result.

SERVE-1: a request alone is answered as the model answers. The script makes small random models itself; it needs
torch, transformers and tokenizers beside ctranslate2.
"""

import sys
import tempfile

import ctranslate2
import numpy as np
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS, WINDOW = [f"w{i}" for i in range(64)], 8
SIZES = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": WINDOW, "initializer_range": 0.3}
SIZES |= {"attn_implementation": "eager"}
FULL = {"layer_types": ["full_attention"] * 2, "query_pre_attn_scalar": 16}


def converted(model):
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = {"bos_token": "w1", "eos_token": "w2", "unk_token": "w0"}
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=words, **ends).save_pretrained(folder)
    TransformersConverter(folder).convert(f"{folder}/ct2")
    return ctranslate2.Generator(f"{folder}/ct2", compute_type="float32")


def logits(generator, prompt, once):
    """Logits behind a prompt that is computed at once, or token by token."""
    how = {"include_prompt_in_result": not once, "max_length": 1 if once else len(prompt)}
    (result,) = generator.generate_batch([[WORDS[t] for t in prompt]], return_logits_vocab=True, **how)
    return np.array(result.logits[0][-1]).ravel()


torch.manual_seed(0)
wrong = False
print(
    f"ctranslate2 {ctranslate2.__version__}, a window of {WINDOW}: largest difference of logits from transformers"
)
print("expected: less than 0.001 everywhere")
for name, model in (
    ("Mistral", MistralForCausalLM(MistralConfig(**SIZES))),
    ("Gemma 3, two full layers", Gemma3ForCausalLM(Gemma3TextConfig(**SIZES, **FULL))),
):
    generator = converted(model.eval())
    for length in (8, 12, 30):
        prompt = list(range(10, 10 + length))
        with torch.no_grad():
            right = model(torch.tensor([prompt])).logits[0, -1].numpy()
        off = [float(np.abs(logits(generator, prompt, once) - right).max()) for once in (True, False)]
        print(f"{name}, prompt of {length} tokens: at once {off[0]:.3f}, token by token {off[1]:.3f}")
        wrong |= max(off) > 1e-3
sys.exit(not wrong)
