"""The README as PyPI shows it: `python -m tools.for_pypi --base ADDRESS` prints it with absolute links.

PyPI does not know the repository: a relative link leads nowhere there. ADDRESS is that of the repository's files,
such as `https://HOST/OWNER/kvconform/blob/main`.
"""

from __future__ import annotations

import argparse
import sys
from urllib.parse import urljoin, urlsplit

from tools.markdown_links import LINK, ROOT


def absolute(text: str, base: str) -> str:
    """The page with each relative link led to the address. Raises ValueError for a link to no file."""
    return LINK.sub(lambda m: "](" + _led("".join(m[1].split()), base) + ")", text)


def _led(link: str, base: str) -> str:
    if urlsplit(link).scheme or link.startswith("#"):
        return link
    if not (ROOT / link.partition("#")[0]).exists():
        raise ValueError(f"README.md links to {link}, which is no file")
    return urljoin(base.rstrip("/") + "/", link)


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="the address of the repository's files")
    base = parser.parse_args().base
    if urlsplit(base).scheme not in ("http", "https"):
        parser.error(f"--base must be an address that begins with https://, is {base}")
    sys.stdout.write(absolute((ROOT / "README.md").read_text(encoding="utf-8"), base))
    return 0


if __name__ == "__main__":
    sys.exit(main())
