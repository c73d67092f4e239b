"""A tool works on the checkout that it stands in, or says that Python finds other packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import CHECKOUT


def test_a_tool_refuses_packages_of_another_place(tmp_path: Path) -> None:
    (tmp_path / "kvspec").mkdir()
    (tmp_path / "kvspec" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "tools.check_examples"],
        cwd=CHECKOUT / "tests",
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"finds those of {tmp_path}; in the checkout: python3 -m pip install -e '.[dev]'" in done.stderr
