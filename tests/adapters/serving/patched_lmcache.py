"""Rules of LMCache's bookkeeping, each broken by a patch of a few lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lmcache.utils import CacheEngineKey
from lmcache.v1.cache_engine import LMCacheEngine
from lmcache.v1.memory_management import TensorMemoryObj
from lmcache.v1.storage_backend import local_disk_backend
from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend
from lmcache.v1.storage_backend.local_disk_backend import LocalDiskBackend
from lmcache.v1.storage_backend.storage_manager import StorageManager
from lmcache.v1.token_database import ChunkedTokenDatabase

from adapters.serving.rules import Patch, Rule, around
from adapters.serving.simulated_lmcache import AMPLE


def tags_are_not_in_keys(patch: Patch) -> None:
    """Rows of one tag are found by requests with another."""
    around(patch, ChunkedTokenDatabase, "_make_key_by_hash", lambda right, self, chunk, *_: right(self, chunk))


def chunks_are_found_by_their_own_tokens(patch: Patch) -> None:
    """A chunk's key leaves out the tokens before it."""
    around(patch, ChunkedTokenDatabase, "_hash_tokens", lambda right, self, tokens, *_: right(self, tokens))


def keys_have_five_bits(patch: Patch) -> None:
    """Chunks that are alike in a few bits are taken for each other."""
    around(patch, ChunkedTokenDatabase, "_hash_tokens", lambda right, self, *args: right(self, *args) % 32)


def pins_are_not_looked_at(patch: Patch) -> None:
    """What a lookup has pinned is evicted."""
    patch.setattr(TensorMemoryObj, "can_evict", property(lambda self: self.meta.ref_count == 1))


def pins_stay(patch: Patch) -> None:
    """What a lookup has pinned stays so."""
    patch.setattr(LMCacheEngine, "lookup_unpin", lambda *_: None)


def one_chunk_too_many_is_found(patch: Patch) -> None:
    """A lookup finds a chunk more than there is."""

    def planted(right: Any, self: Any, keys: Any, *args: Any) -> Any:
        found, where = right(self, keys, *args)
        return min(found + (found > 0), len(keys)), where

    around(patch, StorageManager, "batched_contains", planted)


def a_hole_is_skipped(patch: Patch) -> None:
    """A lookup counts all chunks that are there, also behind one that is not."""
    patch.setattr(
        LocalCPUBackend,
        "batched_contains",
        lambda self, keys, pin=False: sum(self.contains(key, pin) for key in keys),
    )


def what_is_loaded_is_given_back_twice(patch: Patch) -> None:
    """An object that is loaded counts nobody who loads it, and its memory is free when it is loaded."""

    def planted(right: Any, self: Any, key: Any) -> Any:
        found = right(self, key)
        if found is not None:
            found.meta.ref_count -= 1
        return found

    around(patch, LocalCPUBackend, "get_blocking", planted)


def files_lack_their_end(patch: Patch) -> None:
    """Of a file the last row is not written."""
    around(patch, LocalDiskBackend, "write_file", lambda right, self, rows, path: right(self, rows[:-4], path))


def names_of_files_leave_out_tags(patch: Patch) -> None:
    """Rows of unlike tags have one file."""
    around(
        patch,
        LocalDiskBackend,
        "_key_to_path",
        lambda right, self, key: right(self, SimpleNamespace(to_string=lambda: key.chunk_hash_hex)),
    )


def cleared_rows_stay(patch: Patch) -> None:
    """A text that is cleared is still found."""
    patch.setattr(StorageManager, "remove", lambda *_: 0)


def files_stay(patch: Patch) -> None:
    """Files of what is evicted stay on the disk."""
    names = {name: getattr(local_disk_backend.os, name) for name in ("path", "open", "close", "write", "statvfs")}
    patch.setattr(local_disk_backend, "os", SimpleNamespace(**names, remove=lambda path: None))


def layers_have_one_key(patch: Patch) -> None:
    """All layers of a chunk have the key of the first."""
    around(patch, CacheEngineKey, "split_layers", lambda right, self, n: right(self, n)[:1] * n)


RULES: dict[Rule, tuple[str, dict[str, Any], str]] = {
    tags_are_not_in_keys: ("memory", {}, "were stored|another row"),
    chunks_are_found_by_their_own_tokens: ("memory", {}, "were stored|another row"),
    keys_have_five_bits: ("memory", {}, "were stored|another row"),
    pins_are_not_looked_at: ("memory", {"places": 14, "policy": "FIFO"}, "are there"),
    pins_stay: ("memory", {"places": AMPLE}, "pinned"),
    one_chunk_too_many_is_found: ("memory", {}, "were stored|are there"),
    a_hole_is_skipped: ("memory", {"places": 14, "policy": "FIFO"}, "were stored|are there|pinned"),
    what_is_loaded_is_given_back_twice: ("memory", {"places": 24}, "another row|bytes are taken|are there|refer"),
    files_lack_their_end: ("disk", {"policy": "LRU"}, "another row"),
    names_of_files_leave_out_tags: ("disk", {"policy": "LRU"}, "another row|files are in the table|No such file"),
    cleared_rows_stay: ("memory", {"places": AMPLE}, "were stored"),
    files_stay: ("disk", {"on_disk": 10, "policy": "LRU"}, "files are in the table"),
    layers_have_one_key: ("layers", {"policy": "LRU", "clear": 0}, "another row|are stored|bytes are taken|refer"),
}
"""A patch: what it is shown with, and what is said of it."""
