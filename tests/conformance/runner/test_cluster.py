"""A dask cluster tells what one machine tells, though a worker is killed; when it goes, what it told is kept."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from conformance.runner.test_pool import LIMIT, does, sleeps, until_asked
from kvconform import cli
from kvconform.runner.pool import opened
from kvconform.runner.run import Run
from kvconform.worker.tasks import ProcessDied, completed
from kvspec.errors import BadInput
from kvworkshop.commands.soak import Progress
from support.running.waiting import heeding_interrupts, soon
from support.slow import one_in

distributed = pytest.importorskip("distributed", reason="dask is an extra: pip install 'kvconform[dask]'")
dask = pytest.importorskip("dask")

pytestmark = pytest.mark.filterwarnings("ignore")  # of dask's own code

FAKES = ("mutants", "--kind", "fakes", "--match", "Live", "--format", "json")


def local_cluster() -> Any:
    """A scheduler, and two workers, each a process with one thread."""
    return distributed.LocalCluster(
        n_workers=2,
        processes=True,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """One for those that leave it whole."""
    with local_cluster() as made:
        yield made


def busy(cluster: Any) -> list[int]:
    """The workers that have processes at work."""
    return [n.pid for n in cluster.workers.values() if n.pid and psutil.Process(n.pid).children(recursive=True)]


def once_busy(cluster: Any, action: Callable[[], None]) -> None:
    """Do something when both workers are at work."""
    threading.Thread(target=lambda: soon(lambda: len(busy(cluster)) == 2) and action()).start()


@pytest.mark.slow
def test_every_task_comes_to_its_own_end(cluster: Any) -> None:
    names = ("a", "exits", "b", "faults", "hangs", "eats", "raises", "c")
    with opened(on=cluster.scheduler_address, seconds=4.0, memory_limit=LIMIT) as pool:
        ended = {name: future for (name,), future in completed(pool, does, ((n,) for n in names))}
    assert {n: type(f.exception()) for n, f in ended.items() if f.exception()} == {
        "exits": ProcessDied,
        "faults": ProcessDied,
        "hangs": TimeoutError,
        "eats": MemoryError,
        "raises": ValueError,
    }
    assert {n: f.result() for n, f in ended.items() if not f.exception()} == {n: n.upper() for n in "abc"}
    assert soon(lambda: not busy(cluster)), "its processes end with the command"


@pytest.mark.slow  # it takes that both workers begin at once, which a busy machine does not always grant
def test_interrupted_tasks_tell_what_they_have(cluster: Any, tmp_path: Path) -> None:
    def interrupt() -> None:
        assert soon(lambda: all((tmp_path / n).exists() for n in "ab"), 300)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    told = list[str]()
    paths = ((str(tmp_path / n),) for n in "abc")
    with heeding_interrupts(), opened(on=cluster.scheduler_address) as pool, pytest.raises(KeyboardInterrupt):
        told.extend(f.result() for _, f in completed(pool, until_asked, paths))
    assert told == ["a part", "a part"] and not (tmp_path / "c").exists()


def test_another_version_is_refused_and_both_are_said(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kvconform.runner.pool.cluster.SUITE_VERSION", "0.0")
    assert cli.main([*FAKES, "--on", cluster.scheduler_address]) == 2
    said = capsys.readouterr().err
    assert "this machine has kvconform 0.0 (" in said and "has kvconform 0.1 (" in said


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_cluster_over_tls_is_used_with_certificates_and_refused_without(tmp_path: Path) -> None:
    """The cluster is in this process; the certificate is its own authority."""
    key, cert = (str(tmp_path / f"{name}.pem") for name in ("key", "cert"))
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    parts = {f"tls_{who}_{what}": path for who in ("scheduler", "worker", "client") for what, path in
             (("cert", cert), ("key", key))}  # fmt: skip
    security = distributed.Security(tls_ca_file=cert, require_encryption=True, **parts)
    few = {"n_workers": 1, "processes": False, "threads_per_worker": 1, "dashboard_address": None}
    tls = "distributed.comm.tls"
    named = {f"{tls}.ca-file": cert, f"{tls}.client.cert": cert, f"{tls}.client.key": key}
    with distributed.LocalCluster(protocol="tls", security=security, **few) as made_:
        assert made_.scheduler_address.startswith("tls://")
        with pytest.raises(BadInput, match=r"SECURITY\.md says which variables name the certificates"):
            opened(on=made_.scheduler_address).__enter__()
        with dask.config.set(named), opened(on=made_.scheduler_address) as pool:
            assert pool.submit(does, "a").result() == "A"


def test_an_address_where_nobody_answers_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kvconform.runner.pool.cluster.ANSWERS", 1.0)
    assert cli.main([*FAKES, "--on", "tcp://127.0.0.1:1"]) == 2
    assert "tcp://127.0.0.1:1: no dask scheduler" in capsys.readouterr().err


def told(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """A command's status, and what it printed without the time that it took."""
    capfd.readouterr()
    status = cli.main(list(arguments))
    return status, json.loads(capfd.readouterr().out, object_hook=_timeless)


def _timeless(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("seconds", "started", "memory")}


PROOFS = ("prove", "reference", "--window", "2", "--format", "json")


RUN = ("run", "reference", "--chapter", "mem", "--quick", "--traces", "2", "--format", "json")

COMMANDS = {"run": RUN, "prove": PROOFS, "mutants": FAKES}


@pytest.mark.parametrize("name", one_in(3, COMMANDS))
def test_a_cluster_tells_what_one_machine_tells_though_a_worker_is_killed(
    name: str, cluster: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = COMMANDS[name]
    here = told(capfd, *arguments, "--processes", "2")
    once_busy(cluster, lambda: os.kill(busy(cluster)[0], signal.SIGKILL))
    assert told(capfd, *arguments, "--on", cluster.scheduler_address) == here


@pytest.mark.slow
def test_a_soak_on_a_cluster_fails_nobody(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["soak", "Whole", "--operations", "500", "--on", cluster.scheduler_address]
    assert cli.main(arguments) == 0
    assert "0 failed" in capfd.readouterr().out


@pytest.mark.slow
def test_a_cluster_that_goes_away_is_told_from_a_task_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvconform.runner.pool.cluster.ANSWERS", 2.0)
    with local_cluster() as lost, opened(on=lost.scheduler_address) as pool:
        ended = completed(pool, sleeps, [(0.01,), (0.01,), (60.0,), (60.0,)])
        assert all(next(ended)[1].result() > 0 for _ in range(2))
        threading.Thread(target=lost.close).start()
        with pytest.raises(BrokenExecutor, match="went away"):
            next(ended)


@pytest.mark.slow
def test_a_soak_whose_cluster_goes_away_says_how_far_it_came(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvconform.runner.pool.cluster.ANSWERS", 2.0)
    with local_cluster() as lost:
        closing = threading.Thread(target=lost.close)
        monkeypatch.setattr(Progress, "__call__", lambda self: closing.ident or closing.start())
        assert cli.main(["soak", "Whole", "--operations", str(10**9), "--on", lost.scheduler_address]) == 3
    shown = capfd.readouterr()
    assert re.search(r"^Whole: \d+ traces, 0 failed, .*\(cut short\)$", shown.out, re.MULTILINE)
    assert "went away" in shown.err


@pytest.mark.slow
def test_a_run_whose_cluster_goes_away_keeps_what_was_judged(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kvconform.runner.pool.cluster.ANSWERS", 2.0)
    with local_cluster() as lost:
        closing = threading.Thread(target=lost.close)
        monkeypatch.setattr(Run, "keep", _then(Run.keep, lambda: closing.ident or closing.start()))
        arguments = [*RUN, "--report", str(tmp_path), "--on", lost.scheduler_address]
        assert cli.main(arguments) == 3
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["partial"] and "went away" in record["partial_reason"] and record["exit_status"] == 3
    assert any(clause["verdict"] == "PASS" for clause in record["clauses"])


def _then(function: Callable[..., None], action: Callable[[], object]) -> Callable[..., None]:
    """The function, and behind each call of it the action."""

    def both(*arguments: Any) -> None:
        function(*arguments)
        action()

    return both
