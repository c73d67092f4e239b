"""HTML pages that load nothing from a network: style, script and drawings are in the page."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kvreports.safe_text import Html, shortened

TEMPLATES = Path(__file__).parent / "templates"
"""Templates, styles and scripts; every page extends `page.html.j2`."""


def render(template: str, styles: Sequence[str], scripts: Sequence[str], **values: Any) -> str:
    """Render a template with these values, its styles and its scripts as a page."""
    locked = {"style": source(*styles), "script": source(*scripts), "policy": policy(styles, scripts)}
    return fill(template, cut=shortened, **locked, **values)


def fill(template: str, **values: Any) -> str:
    """Render a template with these values. Values that are not HTML already are escaped."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(*names: str) -> Html:
    """The text of styles or scripts for the page. It is our own text, so it is not escaped."""
    return Html("".join((TEMPLATES / n).read_text(encoding="utf-8") for n in names))


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A content security policy: only this style and this script run, and nothing is fetched.

    It is a second lock: the template engine escapes every text already.
    """
    style, script = (digest(source(*names)) for names in (styles, scripts))
    return f"default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data:; base-uri 'none'"


def digest(text: str) -> str:
    """The hash by which a policy allows a style or a script."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
