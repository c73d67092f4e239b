"""What others left in a folder is not written over, and a command writes again where it wrote before."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvconform import cli
from kvspec.errors import BadInput
from kvspec.own_folder import demand_own

WRITERS = {
    "config.json": ("probe", "llama", "-o"),
    "model.safetensors": ("probe", "llama", "-o"),
    "package.json": ("vectors", "npm", "--out"),
    "Cargo.toml": ("vectors", "crate", "--out"),
    "README.md": ("vectors", "export", "--out"),
    "VERSIONS.md": ("board", "record.json", "--out"),
    "index.html": ("site", "--out"),
}
"""By a file that somebody else may have: the command that would write one."""


@pytest.mark.parametrize(("name", "command"), WRITERS.items(), ids=WRITERS)
def test_a_file_of_others_stays_and_is_named(
    name: str, command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / name
    theirs.write_text("# An engine\n\nIts own words.\n")
    assert cli.main([*command, str(tmp_path)]) == 2
    assert f"{theirs} would be lost, and kvconform did not write it" in capsys.readouterr().err
    assert theirs.read_text() == "# An engine\n\nIts own words.\n" and [*tmp_path.iterdir()] == [theirs]


@pytest.mark.parametrize(
    "command", [("probe", "llama", "-o"), ("vectors", "npm", "--out"), ("vectors", "crate", "--out")]
)
def test_what_it_wrote_is_written_again(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("of somebody else")
    assert [cli.main([*command, str(tmp_path)]) for _ in range(2)] == [0, 0]


def test_a_folder_is_its_own_where_its_mark_says_so(tmp_path: Path) -> None:
    files = "README.md", "page.html"
    demand_own(tmp_path, files, "README.md", "# The board")
    (tmp_path / "page.html").symlink_to("nowhere")
    with pytest.raises(BadInput, match=r"page\.html would be lost"):
        demand_own(tmp_path, files, "README.md", "# The board")
    (tmp_path / "README.md").write_text("# Another\n")
    with pytest.raises(BadInput, match=r"README\.md would be lost"):
        demand_own(tmp_path, files, "README.md", "# The board")
    (tmp_path / "README.md").write_text("# The board\n")
    demand_own(tmp_path, files, "README.md", "# The board")
