"""Faults of SGLang's bookkeeping that its answers show: each is planted in the processes of its server.

SGLang loads `plant` as a plugin, where a folder of the tests names it, and plants the fault of the environment
variable PLANTED."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import pytest
from sglang.srt.mem_cache.unified_cache.unified_tree_core import (
    BASE_COMPONENT_TYPE,
    UnifiedTreeCore,
    UnifiedTreeNode,
)

from adapters.serving import patched_sglang
from adapters.serving.rules import Patch, around


class Children(dict[Any, Any]):
    """The children of a node. A key that has no child may find a node elsewhere; such a node is not counted."""

    def __init__(self, owner: Any, there: dict[Any, Any]) -> None:
        self.owner, self.elsewhere = owner, dict[Any, Any]()
        super().__init__()
        for key, node in there.items():
            self[key] = node

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or self.found(key) is not None

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if super().__contains__(key) else self.found(key)

    def pop(self, key: Any, *default: Any) -> Any:
        return super().pop(key) if super().__contains__(key) else self.elsewhere.pop(key, *default)

    def found(self, key: object) -> Any:
        """Give a node that is not a child."""
        return self.elsewhere.get(key)


class ByPlace(Children):
    """Children that are also found below other parents, at the same depth."""

    nodes: ClassVar[dict[Any, list[Any]]] = {}

    def __setitem__(self, key: Any, node: Any) -> None:
        super().__setitem__(key, node)
        self.nodes.setdefault(key, []).append(node)

    def found(self, key: object) -> Any:
        """Give the first node whose first page this is, and that begins where a child would."""
        alive = (node for node in self.nodes.get(key, ()) if dict.get(node.parent.children, key) is node)
        return next((node for node in alive if depth(node.parent) == depth(self.owner)), None)


def depth(node: Any) -> int:
    """Count the tokens from the root to the end of a node."""
    return (len(node.key) + depth(node.parent)) if node.parent is not None else 0


def _children(patch: Patch, sort: type[Children]) -> None:
    def let(node: Any, there: dict[Any, Any]) -> None:
        node.own_children = sort(node, there)

    patch.setattr(UnifiedTreeNode, "children", property(lambda node: node.own_children, let), raising=False)


def _split(core: Any) -> None:
    """Let each page be a node of its own."""
    nodes = [core.root_node]
    while nodes:
        for child in list(nodes.pop().children.values()):
            more = len(child.key) > core.page_size
            nodes.append(core._split_node(child.key, child, core.page_size)[0] if more else child)


def keys_without_parents(patch: Patch) -> None:
    """A page is found by its own tokens and its place, whatever stands before it."""

    def planted(right: Any, self: Any, *args: Any) -> Any:
        _split(self)
        return right(self, *args)

    _children(patch, ByPlace)
    around(patch, UnifiedTreeCore, "_match_prefix_helper", planted)


def found_after_eviction(patch: Patch) -> None:
    """A leaf can be found after it was evicted, and its pages given to others."""

    def planted(right: Any, self: Any, node: Any, *args: Any, **more: Any) -> None:
        rows, parent = node.component_data[BASE_COMPONENT_TYPE].value, node.parent
        right(self, node, *args, **more)
        node.component_data[BASE_COMPONENT_TYPE].value = rows
        self._register_node(node)
        parent.children.elsewhere[node.key.child_key(self.page_size)] = node

    _children(patch, Children)
    around(patch, UnifiedTreeCore, "_delete_unbacked_device_leaf", planted)


def plant() -> None:
    """Plant the fault that the environment names, in this process."""
    if name := os.environ.get("PLANTED"):
        fault = globals().get(name) or getattr(patched_sglang, name)
        fault(pytest.MonkeyPatch())
