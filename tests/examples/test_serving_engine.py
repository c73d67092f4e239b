"""The serving engine: its answers are those of the same network without a cache, whatever it did before or does
beside; by HTTP too."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serving_engine
from kvadapters.probe import Precision, Probe, read
from kvadapters.probe.architectures.llama import LLAMA
from kvadapters.probe.layout import Layout
from kvadapters.probe.views import View
from serving_engine import Engine, Settings
from serving_engine.engine import COUNTED
from serving_engine.sequence import UNKNOWN
from support import serving
from support.serving_judge import loaded

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROMPT = [1, 2, 3, 4, 5, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2]


def engine(**settings: Any) -> Engine:
    _, model = loaded("qwen3", "full,window 6")
    return Engine(model, Settings(**{"block_size": 4, "blocks": 40, **settings}))


def answers(engine: Engine) -> list[Any]:
    return [output for _ in iter(engine.busy, False) for output in engine.step()]


AHEAD = {"ahead": True, "drafts": 0}


def total(requests: int, seed: int, **fixed: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    for counted in serving.counted(requests, seed, **fixed):
        counts.update(counted)
    return counts


def test_lives_end_with_nothing_wrong_and_meet_all_that_an_engine_does() -> None:
    counts = total(250, seed=0)
    assert [name for name in COUNTED if not counts[name]] == ["loads"]
    assert counts["requests"] >= 250


@pytest.mark.parametrize(
    "fixed",
    [AHEAD, {"host_blocks": 20}, {**AHEAD, "host_blocks": 6}, {"adapters": True}, {"vectors": True}],
)
def test_lives_of_steps_that_are_decided_ahead_and_of_blocks_in_the_host(fixed: dict[str, Any]) -> None:
    counts = total(150, seed=0, **fixed)
    met = {"drafts accepted", "drafts rejected"} if "ahead" in fixed else set()
    met |= set() if "host_blocks" in fixed else {"loads"}
    assert {name for name in COUNTED if not counts[name]} == met


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.parametrize("fixed", [{}, {**AHEAD, "host_blocks": 12}])
def test_long_lives_end_with_nothing_wrong(seed: int, fixed: dict[str, Any]) -> None:
    assert total(500, seed, **fixed)["requests"] >= 500


def test_a_prefix_that_was_evicted_is_loaded_from_the_host() -> None:
    served = engine(blocks=12, host_blocks=20, chunk=8)
    for start in (0, 20, 30, 0):
        served.add([start + token for token in PROMPT], new=1)
        (output,) = answers(served)
    assert output.reused >= 16 and served.counts()["loads"] > 0


def test_the_host_forgets_what_was_kept_least_recently() -> None:
    served = engine(host_blocks=2)
    host = served.tables.host
    for number in range(3):
        host.offload((0, bytes([number])), 1)
    assert list(host.kept) == [(0, b"\1"), (0, b"\2")]
    host.look_up((0, b"\1"))
    host.offload((0, b"\3"), 1)
    assert list(host.kept) == [(0, b"\1"), (0, b"\3")]


def test_a_step_is_decided_before_the_tokens_of_the_one_before_are_known() -> None:
    served = engine(**AHEAD)
    number = served.add([1, 2, 3], new=2)
    assert served.step() == [] and served.scheduler.running[0].tokens == [1, 2, 3, UNKNOWN]
    assert served.step() == [] and served.scheduler.running[0].tokens == [1, 2, 3, 4, UNKNOWN]
    (output,) = served.step()
    assert (output.id, output.tokens, served.busy()) == (number, [4, 5], False)


def test_a_text_that_stops_is_not_computed_on() -> None:
    served = engine(**AHEAD)
    served.add([1, 2, 3], new=9, stop=5)
    assert [output.tokens for output in answers(served)] == [[4, 5]]
    assert len(served.tables.pool.free) == 40


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen3"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_a_checkpoint_as_it_is_written(tmp_path: Path, architecture: str, dtype: str) -> None:
    layers = {"llama": "full,full", "mistral": "2*window 5", "qwen3": "full,window 5"}[architecture]
    probe = Probe.of(architecture, layers)
    probe.write(tmp_path, dtype=dtype)
    served = serving_engine.open(tmp_path, Settings())
    served.add(PROMPT, new=3)
    (output,) = answers(served)
    judgement = read(probe, [*PROMPT, *output.tokens[:-1]], output.logprobs, Precision("f32"))
    assert (output.tokens, judgement.wrong) == ([3, 4, 5], [])


def test_a_llama_whose_config_names_windows(tmp_path: Path) -> None:
    """As some engines read it: `layer_types` and a window, though Llama's own library knows none."""
    llama = replace(LLAMA, theta={"full": 10000.0, "window": 10000.0})
    probe = Probe(llama, Layout((View("full"), View("window", 5)), kv_heads=1))
    probe.write(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    types = {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 5}
    (tmp_path / "config.json").write_text(json.dumps(config | types))
    served = serving_engine.open(tmp_path, Settings())
    served.add(PROMPT)
    (output,) = answers(served)
    assert read(probe, PROMPT, output.logprobs, Precision("f32")).wrong == []


def test_a_network_that_is_not_computed_here_is_refused(tmp_path: Path) -> None:
    Probe.of("gpt-oss", "full,window 5").write(tmp_path)
    with pytest.raises(ValueError, match="model type 'gpt_oss'; this engine has llama, mistral, qwen3"):
        serving_engine.open(tmp_path, Settings())


def test_of_a_prompt_that_is_cached_as_a_whole_one_token_is_computed() -> None:
    served = engine()
    for rows in (16, 17, 16, 17):
        served.add(PROMPT[:rows])
        (output,) = answers(served)
        reused = output.reused
    assert (reused, output.reused) == (16, 16)
    served.add(PROMPT[:16])
    assert answers(served)[0].reused == 12


def test_salts_share_nothing() -> None:
    served = engine()
    reused = []
    for salt in ("", "a", "b", "a"):
        served.add(PROMPT, salt=salt)
        reused.append(answers(served)[0].reused)
    assert reused == [0, 0, 0, 16]


def test_adapters_share_nothing_and_an_unknown_one_is_refused() -> None:
    _, model = loaded("qwen3", "full,window 6", True)
    served, reused = Engine(model, Settings(block_size=4, blocks=40)), []
    for adapter in ("", "x", "y", "x"):
        served.add(PROMPT, adapter=adapter)
        reused.append(answers(served)[0].reused)
    assert reused == [0, 0, 0, 16]
    with pytest.raises(ValueError, match="no adapter 'z'; there are"):
        served.add(PROMPT, adapter="z")


def test_vectors_are_found_by_what_they_hold_and_others_are_refused() -> None:
    _, model = loaded("qwen3", "full,window 6")
    served, reused = Engine(model, Settings(block_size=4, blocks=40)), []
    embedding = model.tensors["model.embed_tokens.weight"]
    ids = [0] * 6 + PROMPT[6:]
    for first in (0, 1, 0, 1):
        served.add(ids, vectors={at: embedding[first + at] for at in range(6)})
        reused.append(answers(served)[0].reused)
    assert reused == [0, 0, 16, 16]
    for vectors in ({len(PROMPT): embedding[0]}, {0: embedding[0, :5]}, {0: embedding[0].astype(np.float64)}):
        with pytest.raises(ValueError, match="vector"):
            served.add(PROMPT, vectors=vectors)


def test_no_prefix_cache_finds_nothing() -> None:
    served = engine(prefix_cache=False)
    for _ in range(2):
        served.add(PROMPT)
        assert answers(served)[0].reused == 0


def test_a_hit_needs_what_a_window_sees_below_it_and_no_more() -> None:
    """Blocks that fell out of the window are evicted; the prefix is found all the same. Without those in the window
    it is not."""
    served = engine()
    served.add(PROMPT)
    answers(served)
    cache, keys = served.tables.cache, served.tables.cache.keys("", PROMPT)
    for key in keys[:2]:
        cache.forget(cache.blocks[1, key])
    assert [len(table) for table in cache.find(keys, len(PROMPT))] == [4, 4]
    cache.forget(cache.blocks[1, keys[2]])
    assert cache.find(keys, len(PROMPT)) == [[], []]


def test_samples_begin_with_the_likeliest_tokens_in_turn() -> None:
    served = engine()
    served.add(PROMPT, new=3, samples=3, bias={40: 60.0, 41: 59.0, 42: 58.0})
    found = {output.sample: output.tokens[0] for output in answers(served)}
    assert found == {0: 40, 1: 41, 2: 42}
    assert served.counts()["copies"] > 0


def test_the_highest_logprobs_alone() -> None:
    served = engine()
    served.add(PROMPT, logprobs=5)
    served.add(PROMPT)
    some, whole = (output.logprobs[0] for output in answers(served))
    assert np.isfinite(some).sum() == 5
    assert np.array_equal(some[np.isfinite(some)], whole[whole >= np.sort(whole)[-5]])


def test_an_abort_gives_all_blocks_back_and_no_answer() -> None:
    served = engine(chunk=4)
    number = served.add(PROMPT, samples=2)
    served.step()
    served.abort(number)
    assert (served.busy(), len(served.tables.pool.free)) == (False, 40)
    with pytest.raises(KeyError, match="no request 0"):
        served.abort(number)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"tokens": []}, "the number of tokens is 0; it is from 1 to 160"),
        ({"tokens": [1000000]}, "a token's id is 1000000; it is from 0 to"),
        ({"tokens": [1], "new": 0}, "the number of new tokens is 0"),
        ({"tokens": [1], "samples": 9}, "the number of samples is 9; it is from 1 to 8"),
        ({"tokens": [1], "logprobs": 0}, "logprobs is 0"),
        ({"tokens": [1], "bias": {-1: 1.0}}, "a token's id is -1"),
        ({"tokens": [1] * 100, "new": 60}, "the request needs 59 blocks, and there are 40; make it shorter"),
    ],
)
def test_what_can_never_be_served_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        engine().add(**asked)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"blocks": 0}, "blocks is 0; it is from 1 to 65536"),
        ({"block_size": 1 << 10, "blocks": 1 << 10}, "block_size times blocks is 1048576"),
        ({"drafts": 65}, "drafts is 65"),
        ({"host_blocks": -1}, "host_blocks is -1; it is from 0 to 65536"),
        ({"ahead": True, "drafts": 1}, "drafts follow the last token"),
        ({"rows": "f8"}, "rows is 'f8'; it is one of f32, int8"),
    ],
)
def test_settings_that_no_engine_has(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        engine(**settings)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a probe, as the page says."""
    folder = tmp_path_factory.mktemp("served") / "probe"
    Probe.of("qwen3", "full,window 8").write(folder)
    command = [sys.executable, "-m", "serving_engine", str(folder), "--port", "0"]
    command += ["--block-size", "4", "--blocks", "400"]
    env = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def ask(address: str, path: str = "/v1/completions", **fields: Any) -> Any:
    data = json.dumps(fields).encode() if fields else None
    request = urllib.request.Request(address.removesuffix("/v1") + path, data)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())
    except urllib.error.HTTPError as e:
        return json.loads(e.read())


def test_completions_over_http(address: str) -> None:
    words = {"prompt": " ".join(f"t{i}" for i in PROMPT), "max_tokens": 3, "temperature": 0}
    said = [ask(address, **words, logprobs=-1, return_token_ids=True), ask(address, **words)]
    (choice,) = said[0]["choices"]
    assert (choice["text"], choice["token_ids"], choice["finish_reason"]) == (" t3 t4 t5", [3, 4, 5], "length")
    assert said[1]["choices"][0]["logprobs"] is None
    assert said[1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 16}
    probe = Probe.of("qwen3", "full,window 8")
    ids = {word: i for i, word in enumerate(probe.layout.words())}
    given = [{ids[word]: x for word, x in top.items()} for top in choice["logprobs"]["top_logprobs"]]
    assert read(probe, [*PROMPT, 3, 4], given, Precision("f32")).wrong == []
    assert choice["logprobs"]["token_logprobs"] == [given[i][token] for i, token in enumerate((3, 4, 5))]


def test_requests_that_come_together_are_computed_together(address: str) -> None:
    prompts = [[i, *PROMPT] for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda prompt: ask(address, prompt=prompt, max_tokens=20), prompts))
    assert [answer["choices"][0]["text"].split()[0] for answer in said] == ["t3"] * 8
    assert ask(address, "/counts")["requests"] >= 8


def test_samples_bias_stop_and_salt_over_http(address: str) -> None:
    fields = {"prompt": PROMPT, "n": 2, "max_tokens": 4, "cache_salt": "s"}
    said = ask(address, **fields, logit_bias={"40": 90.0, "41": 80.0}, stop_token_ids=[41])
    assert [(c["index"], c["text"], c["finish_reason"]) for c in said["choices"]] == [
        (0, " t40 t41", "stop"),
        (1, " t41", "stop"),
    ]
    assert said["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"prompt": [1], "best_of": 3}, "fields that are not served: best_of"),
        ({"prompt": [1], "temperature": 1}, "temperature is 1; only 0 or false is served"),
        ({"prompt": "t1 nothing"}, "the tokenizer has no word 'nothing'"),
        ({"prompt": None}, "a prompt is a list of ids, or words between blanks"),
        ({"prompt": [1], "max_tokens": "2"}, "max_tokens is '2'; it is a whole number"),
        ({"prompt": [-1]}, "a token's id is -1"),
    ],
)
def test_what_is_not_served_is_said(address: str, fields: dict[str, Any], says: str) -> None:
    assert says in ask(address, **fields)["error"]["message"]


def test_models_and_health(address: str) -> None:
    assert ask(address, "/v1/models")["data"][0]["id"] == "probe"
    assert ask(address, "/health") == {}
    assert "there is no /v2" in ask(address, "/v2")["error"]["message"]


def test_a_client_that_goes_away_aborts_its_request(address: str) -> None:
    """Its text would take a thousand steps."""
    port, before = int(address.rpartition(":")[2].removesuffix("/v1")), ask(address, "/counts")
    body = json.dumps({"prompt": [1], "max_tokens": 1000})
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(f"POST /v1/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        until(lambda: ask(address, "/counts")["requests"] == before["requests"] + 1)
    until(lambda: ask(address, "/counts")["aborted"] == before["aborted"] + 1)


@pytest.mark.parametrize(
    "sent", ["", "POST /v1/comp", "POST /v1/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", "whole"]
)
def test_a_client_that_resets_its_connection_leaves_no_traceback(tmp_path: Path, sent: str) -> None:
    folder = tmp_path / "probe"
    Probe.of("qwen3", "full").write(folder)
    command = [
        sys.executable,
        "-m",
        "serving_engine",
        str(folder),
        "--port",
        "0",
        "--block-size",
        "4",
        "--blocks",
        "400",
    ]
    env, body = {**os.environ, "PYTHONPATH": str(EXAMPLES)}, json.dumps({"prompt": [1], "max_tokens": 1000})
    whole = sent == "whole"
    sent = f"POST /v1/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}" if whole else sent
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout and process.stderr
        try:
            address = process.stdout.readline().strip()
            port = int(address.rpartition(":")[2].removesuffix("/v1"))
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(sent.encode())
                until(lambda: ask(address, "/counts")["requests"] == whole)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            until(lambda: ask(address, "/counts")["aborted"] == whole)
            assert ask(address, prompt=[1], max_tokens=1)["choices"]
        finally:
            process.terminate()  # else leaving the block waits for it
        assert process.stderr.read() == ""


def until(done: Callable[[], bool]) -> None:
    for _ in range(3000):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError("it does not happen")
