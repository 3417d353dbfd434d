"""What the figure endpoints return."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field


class ThemeName(StrEnum):
    """Colours of a figure."""

    LIGHT = "light"
    DARK = "dark"


class FigureFormat(StrEnum):
    """How a figure is written."""

    JSON = "json"
    CSV = "csv"
    HTML = "html"
    PNG = "png"


class FigureItem(BaseModel):
    """One figure that can be asked for."""

    name: str
    title: str
    question: str = Field(description="What the figure answers")
    definition: str = Field(description="What is drawn; when it depends on the data, see the figure")
    unit: str


class FigureList(BaseModel):
    """All figures."""

    figures: list[FigureItem]


class FigureDocument(BaseModel):
    """A figure in plotly's JSON form: `plotly.graph_objects.Figure(document)` takes it as it is."""

    data: list[dict[str, Any]] = Field(description="Traces; numbers are typed arrays, NaN is a gap")
    layout: dict[str, Any] = Field(description="Layout; `meta` holds the words about it and is_demo")
