"""What an engine says that it reused, beside what it may: who is accused, and by which clause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from adapters.probe import engines
from kvadapters.probe import Precision, Probe
from kvadapters.serving.driver import Answer, Declared, Driver, Request, Sample
from kvconform.serving.blame import blamed
from kvconform.serving.judge import Judge, Wrong
from kvconform.serving.player import Asked
from kvconform.serving.recipes import aim
from kvconform.serving.run import SERVED_LOGPROB, SUSPECT, Run
from kvspec.serving.history import history


def reused(words: str) -> list[Asked]:
    """Requests of 20 tokens that all differ, each alone, of which the last one is said to have reused 16."""
    asked = []
    for number, step in enumerate(history(words)):
        prompt = tuple(range(20 * number, 20 * number + 20))
        request = Request(prompt, step.new, step.samples, step.salt, adapter=step.adapter)
        asked.append(Asked(number, step, request, True))
    asked[-1].answer = Answer((), 16)
    return asked


def judged(asked: list[Asked]) -> list[Wrong]:
    judge = Judge(engines.small("qwen3", "full,window 6"), Precision())
    return [wrong for wrong in judge.judged(asked) if wrong.sort == "reused"]


@pytest.mark.parametrize(
    ("words", "clause"),
    [
        ("ask a 20; ask b 20", "SERVE-3"),
        ("ask a 20 salt=x; ask b 20 salt=y", "SERVE-8"),
        ("ask a 20 adapter=x; ask b 20 adapter=y", "SERVE-19"),
        ("ask a 20", "SERVE-3"),
    ],
)
def test_rows_that_nobody_computed_are_blamed_on_the_salt_or_the_adapter_only_if_there_are_two(
    words: str, clause: str
) -> None:
    asked = reused(words)
    wrong = judged(asked)
    assert [w.request for w in wrong] == [len(asked) - 1]
    assert blamed(asked, wrong, {"ask"}, aim(Declared("engine"), (), 100), {}) == clause


def test_samples_of_one_prompt_may_reuse_the_rows_of_each_other() -> None:
    assert judged(reused("ask a 20 samples=2")) == []
    assert judged(reused("ask a 20 samples=2; ask b 20")) != []


def test_rows_of_a_history_before_may_be_reused() -> None:
    judge = Judge(engines.small("qwen3", "full,window 6"), Precision())
    earlier, asked = reused("ask a 20 salt=x; ask b 20"), reused("ask c 20; ask d 20")
    assert [w.sort for w in judge.judged(earlier) if w.sort == "reused"]
    assert [w.sort for w in judge.judged(asked) if w.sort == "reused"] == []  # d has the tokens of b


class Rounded(Driver):
    """The network in float64, whose logits are rounded to bf16."""

    declared = Declared("rounded")
    probe = engines.small("qwen3", "full,window 6")

    def rounded(self, logits: Any) -> Any:
        """Round logits [n, vocabulary]."""
        return np.asarray(logits).astype(ml_dtypes.bfloat16).astype(float)

    def submit(self, request: Request) -> Request:
        return request

    def wait(self, handle: Request) -> Answer:
        answered = [(handle.tokens[-1] + 1 + i) % self.probe.layout.ids for i in range(handle.new)]
        logits = engines.logits(self.probe, [*handle.tokens, *answered[:-1]])[-handle.new :]
        return Answer((Sample(tuple(answered), self.rounded(logits)),))


PROBE = Rounded.probe


def test_an_engine_that_computes_in_a_coarser_dtype_is_told_which() -> None:
    lines = list[str]()
    run = Run(PROBE, Rounded(), Precision("f32"), tell=lines.append)
    run.go(60)
    [failure] = run.failures  # what the dtype explains is made short and told once
    said = failure.found[-1]
    assert said.startswith("nothing is wrong if the engine computes in") and "bf16" in said
    assert failure.drawing[-1] == said and run.wrong_histories > 5
    told = [line for line in lines if said in line]
    assert [line.startswith(SUSPECT) for line in told] == [True, False], told
    right = Run(PROBE, Rounded(), Precision("bf16"))
    right.go(30)
    assert right.failures == []


class Softmax(Rounded):
    """A network of linear layers, whose logprobs are the logarithms of a softmax in f32."""

    declared = Declared("softmax")
    probe = Probe.of("qwen3-next", "linear,full")

    def rounded(self, logits: Any) -> Any:
        found = logits.astype(np.float32)
        shares = np.exp(found - found.max(-1, keepdims=True))
        return np.log(shares / shares.sum(-1, keepdims=True))


@pytest.mark.must("nothing wrong: each of two roundings is counted")
def test_logprobs_of_a_softmax_in_f32_are_read() -> None:
    run = Run(Softmax.probe, Softmax(), Precision("f32"))
    asked = run.player.play(history("ask a 9 new=99"))
    assert run.judge.judged(asked) == []
    assert Judge(Softmax.probe, replace(run.precision, logprob=SERVED_LOGPROB / 2)).judged(asked)


def answered(request: Request, *samples: tuple[int, ...], ranks: bool = False) -> list[str]:
    """Judge answers of these tokens, with the logits that belong to them; give what is wrong."""
    texts = [[*request.tokens, *tokens[:-1]] for tokens in samples]
    made = [engines.logits(PROBE, text)[-len(t) :] for text, t in zip(texts, samples, strict=True)]
    answer = Answer(tuple(Sample(t, np.asarray(row)) for t, row in zip(samples, made, strict=True)))
    asked = Asked(0, history("ask a 5")[0], request, True, answer)
    return [wrong.sort for wrong in Judge(PROBE, Precision(), ranks).judged([asked])]


@pytest.mark.parametrize(
    ("stop", "tokens", "wrong"),
    [
        (7, (5, 6, 7), []),
        (7, (5, 6, 7, 8, 9), ["answer"]),
        (7, (5, 6), ["answer"]),
        (20, (5, 6, 7, 8, 9), []),
        (None, (5, 6, 7), ["answer"]),
    ],
)
def test_an_answer_ends_with_the_token_that_ends_it(
    stop: int | None, tokens: tuple[int, ...], wrong: list[str]
) -> None:
    assert answered(Request((0, 1, 2, 3, 4), 5, stop=stop), tokens) == wrong


@pytest.mark.parametrize(
    ("ranks", "tokens", "wrong"),
    [
        (True, (30, 20, 20), []),
        (True, (30, 30, 20), ["token"]),
        (True, (20, 20, 20), ["token"]),
        (False, (30, 30, 20), []),
    ],
)
def test_samples_in_their_order_go_on_with_the_likeliest(
    ranks: bool, tokens: tuple[int, ...], wrong: list[str]
) -> None:
    request = Request((0, 1, 2, 3, 4), 3, 2, bias={20: 40.0, 30: 36.0})
    assert answered(request, (20, 20, 20), tokens, ranks=ranks) == wrong
