"""Environments that break other tools: a trace is replayed in each, and tells what it tells in a quiet one."""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from support import fakes

pytestmark = pytest.mark.hostile

TRACE = "ring window=3: append 2; append 2; mask causal; view; rewind 3"
COMMAND = shlex.join([sys.executable, "-P", "-m", "kvconform", "replay", TRACE, "--adapter", "reference"])

VARIABLES: dict[str, dict[str, str]] = {
    "plugins for pytest that there are not": {"PYTEST_PLUGINS": "no_such_plugin", "PYTEST_ADDOPTS": "--no-such"},
    "a start-up file that raises": {"PYTHONSTARTUP": "FOLDER/raises.py"},
    "warnings are errors": {"PYTHONWARNINGS": "error"},
    "warnings of a module that there is not": {"PYTHONWARNINGS": "error::no.such.Warning"},
    "no assertions": {"PYTHONOPTIMIZE": "1"},
    "no assertions and no docstrings": {"PYTHONOPTIMIZE": "2"},
    "the interpreter stays at its end": {"PYTHONINSPECT": "1"},
    "output without a buffer": {"PYTHONUNBUFFERED": "1"},
    "output in ASCII": {"PYTHONIOENCODING": "ascii:strict"},
    "the C locale without UTF-8": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "a locale that there is not": {"LC_ALL": "xx_XX.UTF-8", "LANG": "xx"},
    "Turkish letters": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "a hash seed": {"PYTHONHASHSEED": "0"},
    "another hash seed": {"PYTHONHASHSEED": "4294967295"},
    "Python's development mode": {"PYTHONDEVMODE": "1"},
    "a debugging allocator": {"PYTHONMALLOC": "debug"},
    "traced allocations": {"PYTHONTRACEMALLOC": "1"},
    "a profile of imports": {"PYTHONPROFILEIMPORTTIME": "1"},
    "no bytecode": {"PYTHONDONTWRITEBYTECODE": "1"},
    "bytecode elsewhere, where nothing can be": {"PYTHONPYCACHEPREFIX": "/dev/null/x"},
    "numbers of 640 digits": {"PYTHONINTMAXSTRDIGITS": "640"},
    "no user site": {"PYTHONNOUSERSITE": "1"},
    "a user site that raises": {"PYTHONUSERBASE": "FOLDER"},
    "safe paths": {"PYTHONSAFEPATH": "1"},
    "a debugger as the breakpoint": {"PYTHONBREAKPOINT": "no.such.debugger"},
    "no home": {"HOME": ""},
    "a home that there is not": {"HOME": "/no/such/home"},
    "no folder for temporary files": {"TMPDIR": "/no/such/folder"},
    "a terminal of one column": {"COLUMNS": "1", "LINES": "1", "TERM": "dumb"},
    "a terminal of a million columns": {"COLUMNS": "1000000", "FORCE_COLOR": "1"},
    "an empty search path": {"PATH": ""},
    "a time zone that there is not": {"TZ": "Nowhere/Nothing"},
    "a thousand threads": {"OMP_NUM_THREADS": "1000", "OPENBLAS_NUM_THREADS": "1000"},
    "variables of half letters": {"KV\udcff": "\udcfe"},
    "variables of 100 KiB": {f"KV{i}": "x" * 10_000 for i in range(10)},
    "the fault handler off": {"PYTHONFAULTHANDLER": ""},
}
"""Variables that are added to the environment; FOLDER is a folder with files that raise when they are run."""

SHELLS: dict[str, str] = {
    "SIGCHLD is ignored": "trap '' CHLD; exec {}",
    "SIGPIPE is ignored": "trap '' PIPE; exec {}",
    "SIGINT and SIGTERM are ignored": "trap '' INT TERM; exec {}",
    "SIGHUP is ignored": "nohup {}",
    "SIGUSR1 and SIGUSR2 are ignored": "trap '' USR1 USR2; exec {}",
    "32 descriptors": "ulimit -n 32; exec {}",
    "a small stack": "ulimit -s 1024; exec {}",
    "no core files": "ulimit -c 0; exec {}",
    "no standard input": "exec {} <&-",
    "no standard error": "exec {} 2>&-",
    "standard input is a terminal's opposite": "exec {} < /dev/zero",
    "other descriptors are open": "exec {} 5</dev/null 9</dev/null 33</dev/null",
    "a umask that forbids all": "umask 777; exec {}",
    "the lowest priority": "exec nice -n 19 {}",
    "a folder that is gone": "mkdir gone && cd gone && rmdir ../gone && exec {}",
    "a folder full of libraries that raise": "cd FOLDER && exec {}",
    "a folder named like an option": "mkdir -- --help && cd -- --help && exec {}",
    "a folder whose name is a line end": "mkdir $'a\\nb' && cd $'a\\nb' && exec {}",
    "no variables at all": 'exec env -i PYTHONPATH="$PYTHONPATH" {}',
}
"""How a shell starts the command."""

SHADOWS = ("random", "numpy", "json", "msgspec", "sitecustomize", "usercustomize", "conftest", "kvspec", "raises")


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A folder of modules that raise when they are imported."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')")
    return tmp_path


def replayed(shell: str, environment: dict[str, str], folder: Path) -> tuple[int, bytes]:
    """The status of the command and what it prints."""
    environment = {name: value.replace("FOLDER", str(folder)) for name, value in environment.items()}
    done = subprocess.run(
        ["/bin/bash", "-c", shell.replace("FOLDER", str(folder)).format(COMMAND)],
        env=fakes.environment() | environment,
        cwd=folder / "work" if (folder / "work").is_dir() else folder.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=None if "<" in shell else subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


@cache
def quiet() -> tuple[int, bytes]:
    """The same where nothing is hostile."""
    status, out = replayed("exec {}", {}, Path(__file__))
    assert status == 0 and out.count(b"\n") >= 6
    return status, out


@pytest.mark.must("status 0, all is told")
@pytest.mark.parametrize("variables", VARIABLES.values(), ids=VARIABLES)
def test_variables_say(variables: dict[str, str], folder: Path) -> None:
    (folder / "work").mkdir()
    assert replayed("exec {}", variables, folder) == quiet()


@pytest.mark.must("status 0, all is told")
@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_a_shell_says(shell: str, folder: Path) -> None:
    (folder / "work").mkdir()
    assert replayed(shell, {}, folder) == quiet()
