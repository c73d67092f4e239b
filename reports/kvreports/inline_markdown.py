"""The small Markdown of clauses (`code`, *emphasis*, **strong**, links) as HTML that is safe for any author."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from kvreports.clauses import ID
from kvreports.safe_text import Html

_TOKEN = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\[(?P<label>[^\]\[]+)\]\((?P<url>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)"
    r"|\*\*(?P<strong>[^*]+)\*\*"
    r"|\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*"
    rf"|(?P<id>\b{ID.pattern}\b)"
    r"|(?P<paragraph>\n\s*\n)"
)


def html(text: str, anchors: Mapping[str, str] | None = None) -> Html:
    """The text as HTML. Ids of clauses link to their anchors; only http and https links stay links."""
    out, end = [], 0
    for match in _TOKEN.finditer(text):
        out += [escape(text[end : match.start()]), _token(match, anchors or {})]
        end = match.end()
    return Html("".join([*out, escape(text[end:])]))


def _token(match: re.Match[str], anchors: Mapping[str, str]) -> str:
    part = match.groupdict()
    if part["code"] is not None:
        return f"<code>{escape(part['code'])}</code>"
    if part["label"] is not None:
        return _link(part["label"], part["url"])
    if part["strong"] is not None:
        return f"<strong>{escape(part['strong'])}</strong>"
    if part["emphasis"] is not None:
        return f"<em>{escape(part['emphasis'])}</em>"
    if part["id"] is not None:
        return clause_link(part["id"], anchors)
    return "<br><br>"


def _link(label: str, url: str) -> str:
    if not re.match(r"https?://[^/\s]", url, re.IGNORECASE):
        return escape(label)
    return f'<a href="{escape(url)}" rel="noopener noreferrer">{escape(label)}</a>'


def clause_link(id_: str, anchors: Mapping[str, str]) -> str:
    """The id, linked to its row where the page has one."""
    if id_ not in anchors:
        return escape(id_)
    return f'<a href="#{escape(anchors[id_])}">{escape(id_)}</a>'


def text(markdown: str) -> str:
    """The text without its marks, for a terminal."""
    return _TOKEN.sub(_bare, markdown)


def _bare(match: re.Match[str]) -> str:
    part = match.groupdict()
    if part["label"] is not None:
        return f"{part['label']} <{part['url']}>" if part["url"].startswith("http") else part["label"]
    return part["code"] or part["strong"] or part["emphasis"] or match[0]
