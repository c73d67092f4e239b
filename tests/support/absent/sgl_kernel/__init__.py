"""In place of SGLang's kernels, which its package for a CPU lacks: with torch's own attention SGLang calls none."""

from absent_package import stand_in

__version__ = "0.4.10"
__path__: list[str] = []
__getattr__ = stand_in(__name__, "SGLang has no kernels for a CPU on PyPI")
