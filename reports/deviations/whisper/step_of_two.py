"""whisper: of two tokens behind others, the first sees the first row alone. Wrong result.

LAYER-4, by of=full: append 1; append 2. `is_causal` of torch counts rows from the first one, and the hooks have put
the kept rows before those of this step. Without SDPA the same step raises, as the mask is too narrow.
"""

import sys

import torch
from whisper import __version__
from whisper.model import ModelDimensions, Whisper

torch.manual_seed(0)
model = Whisper(ModelDimensions(1, 4, 8, 2, 1, 10, 16, 8, 2, 1))
torch.nn.init.normal_(model.decoder.positional_embedding)
tokens, audio = torch.tensor([[1, 2, 3]]), torch.randn(1, 4, 8)
with torch.no_grad():
    expected = model.decoder(tokens, audio)[0]
    cache, _ = model.install_kv_cache_hooks()
    seen = torch.cat([model.decoder(part, audio, kv_cache=cache)[0] for part in (tokens[:, :1], tokens[:, 1:])])
off = [round(x, 1) for x in (seen - expected).abs().amax(1).tolist()]
print(f"whisper {__version__}\nexpected: logits off by [0.0, 0.0, 0.0]\nseen:     {off}")
sys.exit(max(off) < 0.1)
