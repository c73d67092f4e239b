"""Every architecture in transformers: it answers as the float64 network does, and hand-broken masks are named.

Run by `nox -s probe`; elsewhere torch is not there, and these tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.probe import engines
from kvadapters.probe import Precision, Probe, read, read_tokens
from kvadapters.probe.asked import asked
from kvadapters.probe.engines import loaded

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

DTYPES = {"f32": (torch.float32, 1e-4), "bf16": (torch.bfloat16, 0.5), "f16": (torch.float16, 0.05)}
"""With how far a logit may be from float64's, of at most 24."""
LAYERS = {
    "llama": ("full,full", "8*full"),
    "mistral": ("2*window 8", "3*full", "8*window 8"),
    "qwen3": ("full,window 8", "8*full", "4*window 8,4*full"),
    "phi3": ("2*window 8", "2*full", "8*window 8"),
    "gemma3": ("full,window 8", "3*full,5*window 8"),
    "gpt-oss": ("full,window 8", "4*window 8,4*full"),
    "deepseek": ("full,full", "8*full"),
    "llama4": ("chunk 16,full", "6*chunk 16,2*full"),
    "qwen3-next": ("full,linear", "linear,linear,full,linear", "4*linear,4*full"),
}
CASES = [(name, layers) for name, all_layers in LAYERS.items() for layers in all_layers]
ROWS = 40


@cache
def written(name: str, layers: str, folder: Path) -> Probe:
    probe = Probe.of(name, layers)
    probe.write(folder)
    return probe


def model(folder: Path, dtype: str) -> Any:
    transformers.logging.disable_progress_bar()
    found, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=DTYPES[dtype][0], output_loading_info=True
    )
    assert not any(info.values()), info
    return found


def attending(probe: Probe) -> set[int]:
    """The first and the last layer that attends: linear layers have no mask."""
    found = [number for number, view in enumerate(probe.layout.layers) if view.kind != "linear"]
    return {found[0], found[-1]}


def ask(engine: Any, tokens: list[int], **more: Any) -> Any:
    with torch.no_grad():
        return engine(torch.tensor([tokens]), **more).logits[0].float().numpy()


@contextmanager
def masked(engine: Any, layer: int, sees: Any) -> Iterator[None]:
    """One layer attends by this mask."""

    def before(_: Any, given: Any, named: dict[str, Any]) -> Any:
        shut = ~torch.tensor(sees)[None, None]
        mask = torch.zeros(shut.shape, dtype=engine.dtype).masked_fill(shut, torch.finfo(engine.dtype).min)
        return given, named | {"attention_mask": mask}

    hook = engine.model.layers[layer].self_attn.register_forward_pre_hook(before, with_kwargs=True)
    yield
    hook.remove()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "layers"), CASES)
def test_it_is_read_right_and_broken_masks_are_named(tmp_path: Path, name: str, layers: str, dtype: str) -> None:
    probe = written(name, layers, tmp_path)
    engine, tokens, precision = model(tmp_path, dtype), engines.text(probe, ROWS), Precision(dtype)
    answers = ask(engine, tokens)
    assert np.abs(answers - engines.logits(probe, tokens)).max() < DTYPES[dtype][1]
    assert read(probe, tokens, answers, precision).wrong == []
    assert (answers.argmax(1) == (np.array(tokens) + 1) % probe.layout.ids).all(), "greedy text counts"
    for layer in attending(probe):
        sees = probe.layout.layers[layer].sees(ROWS)
        for query, row, sort in ((33, 32, "missing"), (20, 25, "extra")):
            with masked(engine, layer, engines.without(sees, query, row)):
                judgement = read(probe, tokens, ask(engine, tokens), precision)
            assert [(r.layer, r.query, [(f.sort, f.rows) for f in r.findings]) for r in judgement.wrong] == [
                (layer, query, [(sort, (row,))])
            ], judgement.told()


@pytest.mark.parametrize(("name", "layers"), CASES)
def test_with_its_cache_in_chunks_and_steps(tmp_path: Path, name: str, layers: str) -> None:
    probe = written(name, layers, tmp_path)
    engine, tokens = model(tmp_path, "f32"), engines.text(probe, ROWS)
    cache, answers = transformers.DynamicCache(config=engine.config), []
    for begin, end in ((0, 17), (17, 30), *((i, i + 1) for i in range(30, ROWS))):
        answers.append(ask(engine, tokens[begin:end], past_key_values=cache, use_cache=True))
    judgement = read(probe, tokens, np.concatenate(answers))
    assert judgement.wrong == [], judgement.told()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_the_key_of_another_token_is_named(tmp_path: Path, name: str, dtype: str) -> None:
    """A row of the engine's cache has the key of another text's token, at the same place. Without match heads
    nothing shows it."""
    layers, precision = LAYERS[name][0], Precision(dtype)
    for match in (True, False):
        probe = Probe.of(name, layers, match=match)
        probe.write(tmp_path)
        engine, tokens = model(tmp_path, dtype), engines.text(probe, ROWS)
        right = ask(engine, tokens)
        assert np.abs(right - engines.logits(probe, tokens)).max() < DTYPES[dtype][1]
        assert read(probe, tokens, right, precision).wrong == []
        layer = max(attending(probe))
        judgement = read(probe, tokens[:30], exchanged(engine, tokens, layer), precision)
        named = {(r.layer, f.sort, f.rows) for r in judgement.wrong for f in r.findings}
        assert named == ({(layer, "match", (20,))} if match else set()), judgement.told()
        keys = [row.keys for r in judgement.wrong for row in r.rows if row.token == tokens[20]]
        assert all(tokens[30] in may for may in keys), "the key's token is among those that it may be of"


def exchanged(engine: Any, tokens: list[int], layer: int) -> Any:
    """What the engine answers behind 23 rows, if the key of row 20 is that of the token at 30."""
    caches = [transformers.DynamicCache(config=engine.config) for _ in range(2)]
    for cache_, token in zip(caches, (tokens[20], tokens[30]), strict=True):
        ask(engine, [*tokens[:20], token, *tokens[21:23]], past_key_values=cache_, use_cache=True)
    latent = engine.config.model_type == "deepseek_v3"  # what it keeps as values are its keys
    ours, theirs = (getattr(one.layers[layer], "values" if latent else "keys") for one in caches)
    ours[:, :, -3] = theirs[:, :, -3]
    return ask(engine, tokens[23:30], past_key_values=caches[0], use_cache=True)


@pytest.mark.parametrize("name", LAYERS)
def test_tokens_alone(tmp_path: Path, name: str) -> None:
    """What the engine generates with its cache has no regret; of a layer whose mask is wrong it is named."""
    layers = LAYERS[name][0]
    probe = Probe.of(name, layers, "tokens")
    probe.write(tmp_path)
    engine, prompt = model(tmp_path, "f32"), engines.text(probe, 24)
    out = engine.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)[0].tolist()[24:]
    judgement = read_tokens(probe, prompt, out)
    assert judgement.wrong == [] and len(set(out)) > 4, judgement.told()
    layer = max(attending(probe))
    sees = probe.layout.layers[layer].sees(24)
    sees[23, 22] = False
    with masked(engine, layer, sees):
        chosen = int(ask(engine, prompt)[-1].argmax())
    assert read_tokens(probe, prompt, [chosen]).wrong == ([] if chosen == out[0] else [0])


@pytest.mark.parametrize("engine", ["transformers", "transformers-static"])
@pytest.mark.parametrize("name", ["gemma3", "mistral", "llama"])
def test_its_caches_are_asked_in_many_histories(tmp_path: Path, name: str, engine: str) -> None:
    probe = written(name, LAYERS[name][0], tmp_path)
    verdict = asked(probe, loaded(engine, str(tmp_path), "f32"), most=30)
    assert verdict.failures == () and verdict.queries > 50, verdict.told()


def test_a_window_that_is_wrong_by_one_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted where transformers makes the masks of its window layers."""
    right = transformers.masking_utils.sliding_window_overlay
    monkeypatch.setattr(transformers.masking_utils, "sliding_window_overlay", lambda window: right(window + 1))
    probe = written("gemma3", "full,window 8", tmp_path)
    told = asked(probe, loaded("transformers", str(tmp_path), "f32"), most=30).told()
    assert "after append 9:" in told, told
    assert "layer 1 (window 8), query 8: sees 1 row too many: row 0" in told and "layer 0" not in told, told


def test_a_copy_that_is_none_is_drawn(tmp_path: Path) -> None:
    probe = written("llama", "full,full", tmp_path)
    model = replace(loaded("transformers", str(tmp_path), "f32"), copy=lambda cache: cache)
    assert "after append 1; copy 3; append 1:" in asked(probe, model, most=10).told()


def test_the_tokenizer_reads_and_writes_words(tmp_path: Path) -> None:
    probe = written("gemma3", "full,window 8", tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("t5 t7  t222")["input_ids"] == [5, 7, 222]
    assert tokenizer.decode([5, 7]) == "t5 t7"
    engine = model(tmp_path, "f32")
    out = engine.generate(**tokenizer("t5 t9", return_tensors="pt"), max_new_tokens=5, do_sample=False)
    assert out[0].tolist() == [5, 9, 10, 11, 12, 13, 14][: len(out[0])] and len(out[0]) == 7
    with pytest.raises(Exception, match=r"UNK|unk"):
        tokenizer("what")
    assert probe.layout.ids == 223
