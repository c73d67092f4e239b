"""What is freed while a profile measures is written again without the system's help."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FRESH_PAGES = """
import resource
import numpy as np
from kvprofile.kept_memory import kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for nbytes in (5 << 20, 40 << 20, 70 << 20):
        np.empty(nbytes, np.uint8)[...] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = [faults() for _ in range(3)]
with kept():
    faults()
    kept_back = [faults() for _ in range(3)]
again = [faults() for _ in range(2)]
print(min(given_back), max(kept_back), min(again))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_what_is_freed_meanwhile_is_not_taken_from_the_system_again() -> None:
    done = subprocess.run((sys.executable, "-c", FRESH_PAGES), capture_output=True, text=True, check=True)
    before, meanwhile, after = map(int, done.stdout.split())
    assert meanwhile < 5 < 30 < min(before, after), done.stdout
