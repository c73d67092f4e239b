"""CTranslate2, a batch with a prompt of one token: other answers are parts of their prompts. A wrong result.

SERVE-12: a request's answer is the same in any company. The script makes a small random model itself; it needs
torch, transformers and tokenizers beside ctranslate2.
"""

import sys
import tempfile

import ctranslate2
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = [f"w{i}" for i in range(64)]
torch.manual_seed(0)
sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, initializer_range=0.3, **sizes))
words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="w0"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
folder = tempfile.mkdtemp()
model.save_pretrained(folder)
PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w1", eos_token="w2", unk_token="w0").save_pretrained(
    folder
)
TransformersConverter(folder).convert(f"{folder}/ct2")
generator = ctranslate2.Generator(f"{folder}/ct2", compute_type="float32")


def answer(*prompts):
    results = generator.generate_batch(prompts, include_prompt_in_result=False, max_length=4)
    return " ".join(results[-1].sequences[0])


prompt = [f"w{i}" for i in range(10, 17)]
alone, beside_two, beside_one = answer(prompt), answer(["w5", "w6"], prompt), answer(["w5"], prompt)
print(f"ctranslate2 {ctranslate2.__version__}: 4 tokens behind {' '.join(prompt)}, include_prompt_in_result=False")
print(f"alone:                          {alone}\nbeside a prompt of two tokens:  {beside_two}")
print(f"beside a prompt of one token:   {beside_one}\nexpected: three times the same")
sys.exit(alone == beside_two == beside_one)
