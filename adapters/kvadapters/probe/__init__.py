"""The probe: a small model of a stock architecture with chosen weights. Its logits say which rows each query saw
in each layer, how many of each id, at which distance, and whether each row was computed in this context.

    probe = Probe.of("gemma3", "full,window 8")
    probe.write("folder")                       # config.json, tokenizer, weights: any engine loads them
    print(read(probe, tokens, logits).told())   # what the engine's queries saw, and what is wrong with it
"""

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.queries import read
from kvadapters.probe.reader.reading import Finding, Judgement, Reading, Row
from kvadapters.probe.reader.tokens import TokenJudgement, read_tokens

__all__ = ["Finding", "Judgement", "Precision", "Probe", "Reading", "Row", "TokenJudgement", "read", "read_tokens"]
