"""mlx-lm, its server with a draft model: an answer's cache lacks the row of its last token. A wrong result.

SERVE-2, with drafts, by hand: ask a 3; ask b a 1. Store and generator are used as by `_serve_single`. Without
a draft model the row is there, since the next token is computed ahead.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models.cache import LRUPromptCache, make_prompt_cache
from mlx_lm.models.llama import Model, ModelArgs

sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
mx.random.seed(0)
model, draft = (Model(ModelArgs("llama", vocab_size=64, rms_norm_eps=1e-5, **sizes)) for _ in range(2))
store, text = LRUPromptCache(), [3, 5, 7]
kept = make_prompt_cache(model) + make_prompt_cache(draft)
for token, _, _ in speculative_generate_step(mx.array(text), model, draft, max_tokens=3, prompt_cache=kept):
    text.append(int(token))
store.insert_cache("model", text[:], kept)
cache, rest = store.fetch_nearest_cache("model", [*text, 9])
((_, alone),) = generate_step(mx.array([*text, 9]), model, max_tokens=1)
rows = cache[0].offset
_, found, _ = next(speculative_generate_step(mx.array(rest), model, draft, max_tokens=1, prompt_cache=cache))
off = float(mx.abs(found - alone).max())
expected, seen = "6 rows of 6, logprobs off by 0.000", f"{rows} rows of 6, logprobs off by {off:.3f}"
print(f"mlx-lm {version('mlx-lm')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
