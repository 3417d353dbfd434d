"""Cards as HTML for mail programs: tables and inline styles, everything escaped, nothing fetched (pure)."""

from __future__ import annotations

from html import escape

from specscope_server.alerts.channels.notification import Card
from specscope_server.alerts.channels.words import rows, shorten, state_words, title

PICTURE_ID = "panel@specscope"
MAX_TEXT = 500
COLOURS = {"critical": "#D55E00", "warning": "#9A6700", "info": "#0072B2"}
OVER = "#00795A"


def html_of(head: str, cards: list[Card], cut: str, has_picture: bool) -> str:
    """Return the page."""
    parts = [f'<p style="font-size:16px;font-weight:600;margin:0 0 16px">{escape(head)}</p>']
    if has_picture:
        parts.append(f'<p><img src="cid:{PICTURE_ID}" alt="The panel of the first alert" width="640"></p>')
    parts += [_card(card) for card in cards]
    parts += [f"<p>{escape(cut)}</p>"] if cut else []
    return (
        '<!doctype html><html lang="en"><body style="font-family:system-ui,sans-serif;font-size:14px;'
        f'color:#1f2328;background:#ffffff;margin:16px">{"".join(parts)}</body></html>'
    )


def _card(card: Card) -> str:
    colour = COLOURS[card.severity] if card.status == "firing" else OVER
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top;padding:2px 16px 2px 0;font-weight:500">'
        f'{escape(shorten(name, MAX_TEXT))}</th><td style="padding:2px 0;white-space:pre-line">'
        f"{escape(shorten(text, MAX_TEXT))}</td></tr>"
        for name, text in rows(card)
    )
    return (
        f'<div style="border-left:4px solid {colour};padding:0 0 0 12px;margin:0 0 24px">'
        f'<p style="margin:0;color:{colour};font-weight:600">{escape(state_words(card))}</p>'
        f'<p style="margin:2px 0 8px;font-size:16px">{escape(title(card))}</p>'
        f'<p style="margin:0 0 8px">{escape(shorten(card.reason, MAX_TEXT))}</p>'
        f"<table>{cells}</table>{_links(card)}</div>"
    )


def _links(card: Card) -> str:
    links = [(link.title, link.url) for link in card.links]
    links += [("Runbook", card.runbook)] if card.runbook else []
    shown = [
        f'<a href="{escape(url)}">{escape(text)}</a>'
        for text, url in links
        if url.startswith(("https://", "http://"))
    ]
    return f'<p style="margin:8px 0 0">{" · ".join(shown)}</p>' if shown else ""
