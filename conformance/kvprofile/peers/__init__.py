"""Peers: other ways of doing the same work, measured beside the adapter in the same rounds.

A peer is an object with a name, a description, and `job`. `job` gives the work of a case, or None if the peer has
no such work, or raises `correct.Wrong` if it computes wrong numbers. To add one, write a module here and name
it in `PEERS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from kvprofile.case import Case
from kvprofile.operation import Job
from kvspec.errors import BadInput, CannotRun
from kvspec.records.profile import PeerRecord


class Peer(Protocol):
    """A peer does the same work. Its time ends when all is done, so it includes `wait`. If it computes on a stream
    of an NVIDIA GPU, it has an attribute `stream`, the stream's handle, and the adapter's clock times that."""

    name: str
    words: str

    def job(self, case: Case, memory: int) -> Job | None:
        """Give the work of a case, with this many bytes of rows in rotation; None if there is no such work. Raises
        Wrong if it computes wrong numbers."""

    def wait(self) -> None:
        """Wait until everything is done."""


PEERS = {
    "numpy": "numpy_peer:Numpy",
    "memcpy": "memcpy_peer:Memcpy",
    "torch": "torch_peer:Torch",
    "index_copy_": "torch_peer:IndexCopy",
    "onnxruntime": "onnxruntime_peer:GroupQueryAttention",
    "ggml": "ggml_peer:FlashAttention",
    "openvino": "openvino_peer:Attention",
    "int8pack_mm": "int8_peer:Int8Products",
    "flex_attention": "flex_peer:Flex",
    "triton": "gpu.triton_peer:Triton",
    "jax": "gpu.jax_peer:Jax",
    "flashinfer": "gpu.flashinfer_peer:FlashInfer",
}
"""Every peer and its place in this package."""

ON_GPU = ("torch", "index_copy_", "flex_attention", "triton", "jax", "flashinfer")
"""Those that compute on a GPU; beside one, the others take part only if asked for."""

ON_CPU = ("numpy", "memcpy", "torch", "index_copy_", "onnxruntime", "ggml", "openvino", "int8pack_mm")
"""Those that compute on a CPU and start quickly; beside one, the others take part only if asked for."""

CANNOT = (ImportError, OSError, RuntimeError, CannotRun)
"""What a peer raises that cannot be made here: its package or its libraries are missing, or it finds no device."""


class Found(NamedTuple):
    """The peers that take part, and the record's entry for each requested peer."""

    peers: tuple[Peer, ...]
    records: list[PeerRecord]


def find(names: Sequence[str] = (), gpu: bool = False) -> Found:
    """Find the peers of these names, or those that suit the device and need not be asked for.

    Raises BadInput for an unknown name.
    """
    for name in names:
        if name not in PEERS:
            raise BadInput(f"--peers: unknown peer {name!r:.40}; known: {', '.join(PEERS)}")
    peers: list[Peer] = []
    records: list[PeerRecord] = []
    for name in names or (ON_GPU if gpu else ON_CPU):
        try:
            peer = _made(PEERS[name])
            if gpu and not names and not getattr(peer, "on_gpu", True):
                raise CannotRun("it finds no GPU, and the adapter has one")
        except CANNOT as e:
            why = "cannot be imported" if isinstance(e, ImportError) else "cannot run here"
            records.append(PeerRecord(name=name, words="", missing=f"it {why} ({e})"))
            continue
        peers.append(peer)
        records.append(PeerRecord(name=name, words=peer.words, missing=""))
    return Found(tuple(peers), records)


def _made(where: str) -> Peer:
    module, _, name = where.partition(":")
    make: Callable[[], Any] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return cast(Peer, make())
