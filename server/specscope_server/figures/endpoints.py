"""Figures as JSON for plotly, as CSV of what is drawn, or as a page to save."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from specscope_server.figures import service
from specscope_server.figures.export import figure_csv, figure_html
from specscope_server.figures.png import picture_of
from specscope_server.figures.schemas import FigureDocument, FigureFormat, FigureItem, FigureList, ThemeName
from specscope_server.kit.figures_theme import THEMES
from specscope_server.kit.panel import PanelQuery
from specscope_server.kit.plotly_library import plotly_library
from specscope_server.kit.web.formats import MEDIA_TYPES, cached, dump_json
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.params import Format, LaunchChoice, Range, Rank, ServerName
from specscope_server.kit.web.state import Db, State

router = APIRouter(tags=["figures"])

_LIST_EXAMPLE = {
    "figures": [
        {
            "name": "accept-length", "title": "Accept length τ", "unit": "tokens per cycle",
            "question": "How many tokens does one speculative cycle emit?",
            "definition": "τ = 1 + mean accepted drafts",
        }
    ]
}  # fmt: skip
_ARRAY_EXAMPLE = {"dtype": "f8", "bdata": "AAAAAAAAAEA="}
_FIGURE_EXAMPLE = {
    "data": [{"type": "scatter", "name": "accept length τ", "x": _ARRAY_EXAMPLE, "y": _ARRAY_EXAMPLE}],
    "layout": {"meta": {"name": "accept-length", "title": "Accept length τ", "is_demo": False}},
}  # fmt: skip
_CSV_EXAMPLE = "line,time,value\r\naccept length τ,2026-03-01T12:00:15.000Z,2.0\r\n"


@router.get(
    "/figures", summary="List the figures", response_model=FigureList, responses=answers(_LIST_EXAMPLE)
)
def figures() -> FigureList:
    """Every figure that can be asked for by name, with what it answers."""
    items = [panel.words for panel in service.panels().values()]
    return FigureList(
        figures=[
            FigureItem(
                name=words.name,
                title=words.title,
                question=words.question,
                definition=words.definition,
                unit=words.unit,
            )
            for words in items
        ]
    )


@router.get(
    "/figures/{name}",
    summary="Draw a figure",
    response_model=FigureDocument,
    responses=answers(_FIGURE_EXAMPLE, 404, 422, csv=_CSV_EXAMPLE, more=("text/html", "image/png")),
)
def figure(
    request: Request,
    db: Db,
    state: State,
    range_: Range,
    name: str,
    server: ServerName,
    launch: LaunchChoice = None,
    rank: Rank = None,
    by: Annotated[str | None, Query(description="Figures of parts: what requests are compared by")] = None,
    label: Annotated[
        list[str] | None, Query(description="Figures of requests: only those with this label, `NAME=VALUE`")
    ] = None,
    search: Annotated[str, Query(description="Figures of requests: text in the id or the labels")] = "",
    reference: Annotated[
        int | None,
        Query(ge=0, le=MAX_ID, description="Figures of hidden states: id of the training reference"),
    ] = None,
    boundaries: Annotated[
        int | None,
        Query(ge=0, le=MAX_ID, description="Figures of hidden states: id of the reference of all boundaries"),
    ] = None,
    theme: Annotated[ThemeName, Query(description="Colours")] = ThemeName.LIGHT,
    chosen: Annotated[
        FigureFormat,
        Query(
            alias="format",
            description="`json` (plotly), `csv` of what is drawn, `html` to save, `png` where this server "
            "has a Chromium",
        ),
    ] = FigureFormat.JSON,
) -> Response:
    """A figure of one server over a range, exactly as the pages draw it."""
    query = PanelQuery(
        server=server, launch=launch, rank=rank, range=range_, state=state, by=by, labels=tuple(label or ()),
        search=search, reference=reference, boundaries=boundaries,
    )  # fmt: skip
    drawn = service.drawn(db, name, query, THEMES[theme])
    if chosen is FigureFormat.JSON:
        return cached(request, dump_json(drawn), MEDIA_TYPES[Format.JSON], closed=range_.is_closed)
    if chosen is FigureFormat.PNG:
        answer = cached(request, picture_of(drawn), "image/png", closed=range_.is_closed)
    elif chosen is FigureFormat.CSV:
        answer = cached(request, figure_csv(drawn), MEDIA_TYPES[Format.CSV], closed=range_.is_closed)
    else:
        page = figure_html(drawn, plotly_library().path.read_text("utf-8"))
        answer = cached(request, page, "text/html; charset=utf-8", closed=range_.is_closed)
    answer.headers["Content-Disposition"] = f'attachment; filename="specscope-{name}.{chosen}"'
    return answer
