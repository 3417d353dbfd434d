"""The template environment: autoescape on, undefined names are errors."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from specscope_server.alerts.numbers import number
from specscope_server.kit.plotly_library import frontend_folder, plotly_library
from specscope_server.pages import wording
from specscope_server.pages.assets import asset_url
from specscope_server.pages.page import (
    DEFAULT_REFRESH,
    NAVIGATION,
    RANGE_CHOICES,
    REFRESH_CHOICES,
)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment shared by all pages."""
    env = Environment(
        loader=FileSystemLoader(frontend_folder() / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        asset=asset_url,
        plotly=plotly_library(),
        navigation=NAVIGATION,
        range_choices=RANGE_CHOICES,
        refresh_choices=REFRESH_CHOICES,
        default_refresh=DEFAULT_REFRESH,
        version=_version(),
    )
    env.filters.update(
        shorten=wording.shorten, age=wording.age_text, moment=wording.moment_text, count=wording.count_text,
        bytes=wording.bytes_text, flags=wording.flags, measured=number,
    )  # fmt: skip
    return env


def render(template: str, status: int = 200, /, **context: Any) -> Response:
    """Return a page or fragment; never kept by caches, since it shows the present."""
    body = environment().get_template(template).render(**context)
    return Response(body, status, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")


def _version() -> str:
    try:
        return version("specscope")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "(not installed)"
