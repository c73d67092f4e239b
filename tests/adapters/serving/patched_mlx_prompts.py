"""Rules of mlx-lm's store of caches of prompts, each broken by a patch of a few lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlx_lm.models import cache as caches
from mlx_lm.models.cache import KVCache, LRUPromptCache, PromptTrie, RotatingKVCache

from adapters.serving.kept_rows import answered
from adapters.serving.rules import Patch, Rule, around


def a_cache_is_handed_out_itself(patch: Patch) -> None:
    """The cache that is kept is handed out, and not a copy of it."""
    patch.setattr(caches, "copy", SimpleNamespace(deepcopy=lambda cache: cache))


def models_are_not_in_keys(patch: Patch) -> None:
    """Rows of one model are found by requests to another."""
    for name in ("add", "get", "pop", "pop_prefixes", "search"):
        around(patch, PromptTrie, name, lambda right, self, model, *args: right(self, "any", *args))


def tokens_that_are_alike_are_taken_for_each_other(patch: Patch) -> None:
    """A key has four bits of each token."""

    def planted(right: Any, self: Any, model: Any, tokens: Any, *args: Any) -> Any:
        return right(self, model, [token % 16 for token in tokens], *args)

    for name in ("add", "get", "pop", "pop_prefixes", "search"):
        around(patch, PromptTrie, name, planted)


def one_row_too_few_is_trimmed(patch: Patch) -> None:
    """A cache that is trimmed keeps a row more than it is asked to."""
    around(patch, KVCache, "trim", lambda right, self, n: right(self, max(0, n - 1)))


def windows_can_be_trimmed(patch: Patch) -> None:
    """A window that has let rows go says that it can be trimmed."""
    patch.setattr(RotatingKVCache, "is_trimmable", lambda self: True)


def states_can_be_trimmed(patch: Patch) -> None:
    """A state says that it can be trimmed."""
    patch.setattr(caches.ArraysCache, "is_trimmable", lambda self: True)
    patch.setattr(caches.ArraysCache, "trim", lambda self, n: n, raising=False)


def a_text_has_one_row_less(patch: Patch) -> None:
    """A cache is stored under a text with one token more than it has rows."""

    around(
        patch,
        LRUPromptCache,
        "insert_cache",
        lambda right, self, model, tokens, *args, **more: right(self, model, answered(tokens, 1), *args, **more),
    )


def one_token_too_many_is_shared(patch: Patch) -> None:
    """Texts share the token at which they part."""

    def planted(right: Any, self: Any, model: Any, tokens: Any) -> Any:
        found = right(self, model, tokens)
        found.common_prefix += found.longer is not None
        return found

    around(patch, PromptTrie, "search", planted)


def prefixes_are_always_dropped(patch: Patch) -> None:
    """A longer text takes the place of a shorter one, also where it cannot be cut to it."""
    patch.setattr(caches, "can_trim_prompt_cache", lambda cache: True)


def bytes_stay_counted(patch: Patch) -> None:
    """The bytes of a cache that goes are not counted off."""

    def planted(right: Any, self: Any, **more: Any) -> None:
        before = self._n_bytes
        right(self, **more)
        self._n_bytes = before

    around(patch, LRUPromptCache, "trim_to", planted)


def dropped_texts_stay_in_the_queue(patch: Patch) -> None:
    """A text that a longer one takes the place of still waits for its eviction."""
    patch.setattr(LRUPromptCache.CacheOrder, "remove", lambda *args: None)


def more_is_kept_than_may_be(patch: Patch) -> None:
    """One cache more is kept than the store is asked to keep."""

    def planted(right: Any, self: Any, *args: Any, **more: Any) -> None:
        self.max_size += len(self) == self.max_size
        right(self, *args, **more)

    around(patch, LRUPromptCache, "insert_cache", planted)


RULES: dict[Rule, tuple[str, str]] = {
    a_cache_is_handed_out_itself: ("full", "row"),
    models_are_not_in_keys: ("full", "never stored|row|KeyError|it counts"),
    tokens_that_are_alike_are_taken_for_each_other: ("full", "row|never stored|rest"),
    one_row_too_few_is_trimmed: ("full,full", "row"),
    windows_can_be_trimmed: ("full,window", "row"),
    states_can_be_trimmed: ("full,state", "the state"),
    a_text_has_one_row_less: ("full", "never stored|row"),
    one_token_too_many_is_shared: ("full", "never stored|row"),
    prefixes_are_always_dropped: ("full,state", "no attribute 'trim'"),
    bytes_stay_counted: ("full", "bytes"),
    dropped_texts_stay_in_the_queue: ("full", "it counts"),
    more_is_kept_than_may_be: ("full", "more than it may have"),
}
"""A patch: the layers that it is shown with, and what is said of it."""
