"""The floors of the house: what each room imports, in every package and folder.

`python -m tools.floors` draws them. A room is a folder, or a module that stands beside folders. Every import
counts, also inside functions, under TYPE_CHECKING and by name (`objects("kvspec.costs", "append")` of the registry
reaches every module of that package): a reader follows those too. A room's floor is the longest
way down from it; rooms that import each other share one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("spec/kvspec", "reference/kvref", "adapters/kvadapters", "adapters/kvgpu", "reports/kvreports"),
    *("conformance/kvconform", "conformance/kvworkshop", "conformance/kvprofile"),
)
"""Where the packages stand, the lowest first."""

Arrows = Mapping[str, frozenset[str]]
"""What each node points at; every node is a key."""


def files(package: str) -> list[Path]:
    """Every module of a package."""
    paths = sorted((ROOT / package).rglob("*.py"))
    assert paths, f"no modules under {package}"
    return paths


@cache
def nodes(file: Path) -> list[ast.AST]:
    """Everything in the text of a module."""
    return list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """What a file imports, wherever in its text: the module, and the name taken from it ("" if none)."""
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield from ((node.module or "", alias.name) for alias in node.names)


@cache
def modules() -> dict[str, frozenset[str]]:
    """Every module of all packages by its dotted name, and the modules it imports of them."""
    named = _named()
    arrows = {name: {*_inside(named, file), *_looked_up(named, name, file)} for name, file in named.items()}
    return {name: frozenset(targets - {name}) for name, targets in arrows.items()}


def _named() -> dict[str, Path]:
    return {_dotted(file, package): file for package in PACKAGES for file in files(package)}


def _dotted(file: Path, package: str) -> str:
    path = file.relative_to((ROOT / package).parent).with_suffix("")
    return ".".join(path.parts).removesuffix(".__init__")


def _inside(named: Mapping[str, Path], file: Path) -> Iterator[str]:
    for source, name in imported(file):
        target = f"{source}.{name}" if f"{source}.{name}" in named else source
        if target in named:
            yield target


BY_NAME = ("modules", "members", "objects", "ByKind", "import_module")
"""Functions that import the modules of a package by its name."""


def _looked_up(named: Mapping[str, Path], name: str, file: Path) -> Iterator[str]:
    """What a file imports by name: the modules of each package that it names, if it calls such a function."""
    calls = [node for node in nodes(file) if isinstance(node, ast.Call) and _called(node) in BY_NAME]
    given = [part for call in calls for part in ast.walk(call)]
    said = {text for text in map(_text, nodes(file)) if "." in text}
    said |= {_text(part) for part in given} | {_own_name(part, name, file) for part in given}
    for target in named if calls else ():
        if {target, target.rpartition(".")[0]} & (said - {""}):
            yield target


def _text(node: ast.AST) -> str:
    """A text that stands in a module; the beginning of a name ends with a point."""
    return node.value.rstrip(".") if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _called(node: ast.Call) -> str:
    """The last word of the function's name."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _own_name(node: ast.AST, name: str, file: Path) -> str:
    """The package that `__name__` stands for, alone or of an imported package."""
    if isinstance(node, ast.Name) and node.id == "__name__":
        return name
    if isinstance(node, ast.Attribute) and node.attr == "__name__" and isinstance(node.value, ast.Name):
        return next((f"{m}.{n}" for m, n in imported(file) if n == node.value.id), "")
    return ""


def folders() -> list[str]:
    """Every folder that holds folders of modules, the packages first among them."""
    names = _named()
    parents = {name.rpartition(".")[0] for name in names} - {""}
    holding = {parent.rpartition(".")[0] for parent in parents} - {""}
    return sorted(holding | {name for name in names if "." not in name})


def rooms(folder: str) -> Arrows:
    """The rooms of a folder. Its own `__init__.py` is no room: it is the door."""
    arrows = dict[str, set[str]]()
    for source, targets in modules().items():
        if at := _room(folder, source):
            arrows.setdefault(at, set()).update(_room(folder, target) for target in targets)
    return {room: frozenset(below - {room, ""}) for room, below in arrows.items()}


def _room(folder: str, name: str) -> str:
    return name.removeprefix(f"{folder}.").split(".")[0] if name.startswith(f"{folder}.") else ""


def circles(arrows: Arrows) -> list[list[str]]:
    """Groups of nodes that all reach each other."""
    below = {node: _reached(arrows, node) for node in arrows}
    groups = {frozenset(other for other in below[node] if node in below[other]) for node in arrows}
    return sorted(sorted(group) for group in groups if group)


def _reached(arrows: Arrows, node: str) -> set[str]:
    reached, todo = set[str](), [node]
    while todo:
        new = arrows[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def chains(arrows: Arrows) -> dict[str, list[str]]:
    """The longest way down from each node, itself first; a circle is one step of it."""
    circle = {node: " + ".join(group) for group in circles(arrows) for node in group}
    found = dict[str, list[str]]()

    def down(node: str) -> list[str]:
        if (name := circle.get(node, node)) not in found:
            group = name.split(" + ")
            below = frozenset[str]().union(*(arrows[n] for n in group)).difference(group)
            found[name] = [name, *max(map(down, sorted(below)), key=len, default=[])]
        return found[name]

    return {node: down(node) for node in arrows}


def drawing(folder: str) -> str:
    """The floors of a folder, the highest first, and its circles."""
    arrows = rooms(folder)
    floors = {room: len(chain) for room, chain in chains(arrows).items()}
    lines = [f"{folder}: {max(floors.values())} floors, {len(arrows)} rooms"]
    for floor in range(max(floors.values()), 0, -1):
        lines += [f"  {floor:2}  " + "  ".join(sorted(room for room in floors if floors[room] == floor))]
    return "\n".join([*lines, *(f"  circle: {' '.join(group)}" for group in circles(arrows))])


def deepest() -> list[str]:
    """The longest chain of imports from file to file."""
    return max(chains(modules()).values(), key=len)


def main() -> None:
    """Draw every folder, then the circles of files and the deepest chain of imports."""
    print("\n\n".join(map(drawing, folders())))
    for group in circles(modules()):
        print(f"\nfiles that import each other: {' '.join(group)}")
    print("\n".join([f"\nthe deepest chain, {len(deepest())} files:", *(f"  {name}" for name in deepest())]))


if __name__ == "__main__":
    main()
