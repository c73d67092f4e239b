"""The pictures of the first screens: of the README as it is, by a browser where there is one."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tools import first_screens

BROWSER = """#!/bin/sh
for option; do
  case $option in --screenshot=*) echo "$*" > "${option#--screenshot=}" ;; esac
done
"""
"""Writes how it was called in the place of a picture."""


SCREEN = (first_screens.WIDTH, first_screens.HEIGHT)


@pytest.mark.parametrize(
    ("name", "size"), [("readme", SCREEN), ("demo", SCREEN), ("preview", first_screens.PREVIEW)]
)
def test_the_published_pictures_are_of_one_screen(name: str, size: tuple[int, int]) -> None:
    data = (first_screens.PICTURES / f"{name}.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == size


def test_the_readme_is_shown_with_its_picture() -> None:
    page = first_screens.readme()
    assert "<h1>kvconform</h1>" in page and 'src="reports/published/demo.svg"' in page
    assert f'<base href="{first_screens.ROOT.as_uri()}/">' in page


def test_both_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, report = tmp_path / "browser", tmp_path / "report.html"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    report.write_text("")
    monkeypatch.setattr(first_screens, "find_browser", lambda: str(browser))
    monkeypatch.setattr(first_screens, "PICTURES", tmp_path / "pictures")
    assert first_screens.main(report) == 0
    called = {name: (tmp_path / "pictures" / f"{name}.png").read_text() for name in ("readme", "demo", "preview")}
    assert "readme.html" in called["readme"] and report.as_uri() in called["demo"]
    assert "--window-size=1200,630" in called.pop("preview")
    assert all("--headless" in words and "--window-size=1280,900" in words for words in called.values())


def test_without_a_browser_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(first_screens, "find_browser", lambda: None)
    monkeypatch.setattr(first_screens, "PICTURES", tmp_path / "pictures")
    assert first_screens.main(tmp_path / "report.html") == 0
    assert "no browser here" in capsys.readouterr().out and not (tmp_path / "pictures").exists()
