"""In place of torchvision: the one on PyPI is for CUDA, and does not load beside a torch for CPUs. SGLang imports
it as it starts, for models of images, and calls none of it for a model of text."""

from absent_package import stand_in

__version__ = "0.28.0"
__path__: list[str] = []
__getattr__ = stand_in(__name__, "SGLang needs it for images alone")
