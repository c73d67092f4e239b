"""Takes pictures of the first screens that a newcomer sees: `python -m tools.first_screens REPORT.html`.

`readme.png` is the top of the README as a code host shows it, `demo.png` the top of the page that `kvconform demo`
opens, `preview.png` what a link to the site shows elsewhere. `nox -s demo` takes them. Without a browser this says
so, changes nothing, and ends with status 0.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_it import MarkdownIt

from kvreports.page import TEMPLATES
from kvreports.site import addresses
from tools.check_in_browser import find_browser

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "reports" / "published" / "pictures"
WIDTH, HEIGHT = 1280, 900
PREVIEW = 1200, 630
"""What previews of links want."""
CARD = """body { margin: 0; padding: 36px 60px; font: 26px/1.3 sans-serif; color: #1f2328; background: #fff; }
h1 { font-size: 54px; margin: 0 0 4px; } h1 img { height: 50px; vertical-align: -6px; margin-right: 18px; }
p { margin: 0 0 22px; } p + img { height: 408px; }"""
STYLE = """body { max-width: 1012px; margin: 32px auto; font: 16px/1.5 sans-serif; color: #1f2328; }
img { max-width: 100%; } pre { background: #f6f8fa; padding: 16px; overflow: hidden; font-size: 14px; }
table { border-collapse: collapse; } th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
a { color: #0969da; }"""


def readme() -> str:
    """The README as a page; its links and pictures are those of the repository."""
    text = MarkdownIt("commonmark").enable("table").render((ROOT / "README.md").read_text(encoding="utf-8"))
    return f'<!doctype html><meta charset="utf-8"><base href="{ROOT.as_uri()}/"><style>{STYLE}</style>{text}'


def card() -> str:
    """What a link to the site shows elsewhere: the mark, the question, and a failure as it is drawn."""
    mark = (TEMPLATES / "site" / "mark.svg").as_uri()
    words = f'<h1><img src="{mark}" alt="">Is your KV cache right?</h1>'
    words += "<p>kvconform: the reference spec and the conformance suite of KV caches</p>"
    drawn = f'<img src="{(ROOT / addresses.PICTURE).as_uri()}" alt="">'
    return f'<!doctype html><meta charset="utf-8"><style>{CARD}</style>{words}{drawn}'


def take(browser: str, page: Path, picture: Path, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    """Take a picture of the top of a page. Raises CalledProcessError if the browser fails."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={size[0]},{size[1]}",
    ]
    command = [browser, *options, f"--screenshot={picture}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def main(report: Path) -> int:
    """Take the pictures."""
    browser = find_browser()
    if browser is None:
        print("there is no browser here: the pictures of the first screens stay as they are")
        return 0
    with TemporaryDirectory() as folder:
        page = Path(folder, "readme.html")
        page.write_text(readme(), encoding="utf-8")
        take(browser, page, PICTURES / "readme.png")
        page.write_text(card(), encoding="utf-8")
        take(browser, page, PICTURES / "preview.png", PREVIEW)
    take(browser, report, PICTURES / "demo.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
