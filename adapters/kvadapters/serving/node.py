"""Engines that are packages of npm, in a process of Node.js: lines of JSON go in and come out.

The package is looked for in the folder `node_modules` of the current folder, or of the one that the environment
variable KVCONFORM_NODE names. A script beside a driver loads it. The script takes {"do": "ask", "id", "tokens",
"new"} and {"do": "cancel", "id"}. It answers {"id", "tokens", "logprobs", "reused"} or {"id", "failed"}, with the
logprobs of all ids as float64 in base64. To {"do": "reset"} and {"do": "counts"} it answers {"counts"}."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from kvadapters.serving.driver import Answer, Driver, EngineFailed, Request, Sample
from kvspec.errors import BadInput, CannotRun, Refused

WHERE = "KVCONFORM_NODE"
TIMEOUT = 120.0
"""Seconds that a script may be silent while somebody waits."""


class Node(Driver):
    """Drives a script that has loaded a package. `settings` are handed to it as JSON."""

    def __init__(self, script: Path, package: str, settings: Mapping[str, Any]) -> None:
        folder = Path(os.environ.get(WHERE, "."))
        if not (node := shutil.which("node")):
            raise CannotRun(f"{package} needs Node.js: there is no `node` on the path")
        found = folder / "node_modules" / package / "package.json"
        if not found.is_file():
            raise CannotRun(f"{package} is not in {folder.resolve()}: npm install {package} there, or set {WHERE}")
        self.version = str(json.loads(found.read_text(encoding="utf-8"))["version"])
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self.process = subprocess.Popen(
            [node, str(script), json.dumps(settings)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
        )
        self.numbers, self.ended = count(1), dict[int, Mapping[str, Any]]()
        try:
            self.counts()
        except EngineFailed as e:
            self.close()
            raise BadInput(f"{package} does not start: {e}") from None

    def submit(self, request: Request) -> int:
        """Hand a request in. Raises Refused for one that is longer than a sequence may be."""
        if 0 < self.declared.longest < len(request.tokens) + request.new:
            raise Refused("", f"a sequence has at most {self.declared.longest} tokens")
        number = next(self.numbers)
        self._say({"do": "ask", "id": number, "tokens": request.tokens, "new": request.new})
        return number

    def wait(self, handle: int) -> Answer:
        """Wait for an answer. Raises EngineFailed."""
        while handle not in self.ended:
            other = self._read()
            self.ended[other["id"]] = other
        said = self.ended.pop(handle)
        if "failed" in said:
            raise EngineFailed(said["failed"])
        logprobs = np.frombuffer(base64.b64decode(said["logprobs"]), "<f8").reshape(len(said["tokens"]), -1)
        return Answer((Sample(tuple(said["tokens"]), logprobs),), said["reused"])

    def cancel(self, handle: int) -> None:
        """Let a request go; its answer is not waited for."""
        self._say({"do": "cancel", "id": handle})

    def counts(self) -> Mapping[str, int]:
        """Ask what was counted."""
        return self._asked("counts")

    def reset(self) -> None:
        """Begin anew."""
        self._asked("reset")
        self.ended.clear()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def _asked(self, do: str) -> Mapping[str, int]:
        self._say({"do": do})
        while "counts" not in (said := self._read()):
            self.ended[said["id"]] = said
        counts: Mapping[str, int] = said["counts"]
        return counts

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise EngineFailed(self._last_words()) from None

    def _read(self) -> Mapping[str, Any]:
        """Read one line. A process that is silent for too long is ended. Raises EngineFailed."""
        assert self.process.stdout
        patience = Timer(TIMEOUT, self.process.kill)
        patience.start()
        line = self.process.stdout.readline()
        patience.cancel()
        if not line:
            raise EngineFailed(self._last_words())
        said: Mapping[str, Any] = json.loads(line)
        return said

    def _last_words(self) -> str:
        """Say how the process ended, with the end of what it wrote."""
        status = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f"the process ended with {status}: {' '.join(said)[-300:]}"
