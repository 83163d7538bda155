"""A record as one page for a browser that needs nothing beside it.

`page.html` is the page; here is what fills it. Every picture is one that `render.svg` draws. They
have much in common, so each is cut into parts, of which the page has every one once.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pisti_env.record import Record
from pisti_env.render import svg, tell_play
from pisti_env.render.picture import FONT
from pisti_env.render.raster import FONT_FILE
from pisti_env.replay.moments import check_moment, moments, names_of, title_of
from pisti_env.replay.text import score_text
from pisti_env.rules import rules_text

TEMPLATE = Path(__file__).with_name("page.html")

_CUT = re.compile(r"(?<=>)(?=<(?:g|rect|text|desc|style)\b)")
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def page(
    record: Record,
    deal: int = 0,
    play: int = 0,
    size: int = 800,
    on_picture: Callable[[int], Any] = lambda pictures: None,
) -> str:
    """Return a page with all deals of a record that opens at a moment, with pictures at most `size`
    pixels wide. `on_picture` is told of every one that is drawn.

    What the record leaves out stands nowhere in it. Raises `ValueError` if there is no such moment,
    or at a play that is illegal.
    """
    check_moment(record, deal, play)
    names = names_of(record)
    parts: dict[str, int] = {}
    deals: list[dict[str, Any]] = []
    for number in range(len(record.deals)):
        pictures, sentences, comments = [], [], []
        for shown in moments(record, number):
            drawn = svg(shown.view, size, shown.reveal, names)
            pictures.append([parts.setdefault(part, len(parts)) for part in _CUT.split(drawn)])
            sentences.append(tell_play(shown.view, names))
            comments.append("\n".join(shown.comments))
            on_picture(1)
        scores = record.deals[number].scores
        points = "unfinished" if scores is None else " : ".join(map(str, scores))
        deals.append(
            {
                "name": f"{number} ({points})",
                "pictures": pictures,
                "plays": sentences,
                "comments": comments,
                "score": score_text(record, number),
            }
        )
    by_number = list(parts)
    first = "".join(by_number[part] for part in deals[deal]["pictures"][play])
    template = TEMPLATE.read_text(encoding="utf-8")
    [script] = _SCRIPT.findall(template)
    values = {
        "script_hash": _base64(hashlib.sha256(script.encode()).digest()),
        "font": FONT,
        "font_data": _base64(FONT_FILE.read_bytes()),  # in which the pictures' text fits its place
        "title": html.escape(title_of(record)),
        "about": html.escape(_about(record)),
        "comments": "".join(f'<p class="comment">{html.escape(c)}</p>' for c in record.comments),
        "size": str(size),
        "picture": first,
        "data": _json({"parts": by_number, "deals": deals, "deal": deal, "play": play}),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], template)


def _about(record: Record) -> str:
    """Return what was played, and when."""
    told = [f"rules: {rules_text(record.rules)}"]
    if record.date is not None:
        told.append(f"played on {record.date.isoformat()}")
    if record.seed is not None:
        told.append(f"seed {record.seed}")
    if record.viewer is None:
        told.append("all hands face up")
    return "; ".join(told)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _json(data: Any) -> str:
    """Return data as JSON that can stand in a page: no text of it can end its element."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
