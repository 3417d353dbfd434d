"""A figure as a file: exactly what is drawn, as CSV or as a page that stands alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any

from specscope_server.kit.figures import Figure, decode_floats
from specscope_server.kit.web.formats import dump_json, to_csv

X_NAME = "x"
"""Key of ``layout.meta`` that names what runs along x, where that is not time."""
Y_NAME = "y"
"""Key of ``layout.meta`` that names what runs along y in a heat map, where the value is a colour."""
DEFINITION = "definition"
"""A column more where lines have definitions of their own."""


def figure_csv(figure: Figure) -> bytes:
    """Return one row per line and point: line, UTC time (or what x is), value; an empty value is a gap.

    A heat map has a column more for what y is, and no row for a cell that is not drawn.
    """
    meta = figure["layout"].get("meta", {})
    along, upward = meta.get(X_NAME, "time"), meta.get(Y_NAME)
    if upward:
        return to_csv(("line", along, upward, "value"), _cells(figure, along, upward))
    columns = ("line", along, "value")
    is_defined = any(DEFINITION in trace.get("meta", {}) for trace in figure["data"])
    return to_csv((*columns, DEFINITION) if is_defined else columns, _rows(figure, along))


def _rows(figure: Figure, along: str) -> Iterator[dict[str, Any]]:
    for trace in figure["data"]:
        same = {"line": trace["name"], DEFINITION: trace.get("meta", {}).get(DEFINITION)}
        for place, value in zip(trace["x"], decode_floats(trace["y"]), strict=True):
            yield {**same, along: place, "value": None if math.isnan(value) else value}


def _cells(figure: Figure, along: str, upward: str) -> Iterator[dict[str, Any]]:
    for trace in figure["data"]:
        places = [(y, x) for y in trace["y"] for x in trace["x"]]
        for (y, x), value in zip(places, decode_floats(trace["z"]), strict=True):
            if not math.isnan(value):
                yield {"line": trace["name"], along: x, upward: y, "value": value}


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="margin:0;background:{background}">
<div id="figure" style="width:100%;height:{height}"></div>
<script>{library}</script>
<script>
const figure = {figure};
figure.layout.height = undefined;
const options = {{responsive: true, displaylogo: false, staticPlot: {still}}};
Plotly.newPlot("figure", figure.data, figure.layout, options);
</script>
</body>
</html>
"""


def figure_html(figure: Figure, library: str, still_px: int | None = None) -> bytes:
    """Return a page that needs no network, to be saved; ``library`` is the text of plotly.js.

    ``still_px``: a figure of this height that answers no pointer, for a picture.
    """
    layout = {**figure["layout"], "margin": {"l": 64, "r": 24, "t": 96, "b": 64}}
    text = dump_json({"data": figure["data"], "layout": layout}).decode()
    page = _PAGE.format(
        title=escape(layout["meta"]["title"]),
        background=layout["paper_bgcolor"],
        height="100vh" if still_px is None else f"{still_px}px",
        still="false" if still_px is None else "true",
        library=library.replace("</script", "<\\/script"),
        figure=text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
    )
    return page.encode()
