"""The API describes itself completely, and its examples are what it would answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine
from tests.server.client import Web

from specscope_server.acceptance import examples as acceptance
from specscope_server.acceptance.position_examples import POSITIONS
from specscope_server.acceptance.position_schemas import AcceptancePositions
from specscope_server.acceptance.schemas import AcceptanceSummary, AcceptanceTrend
from specscope_server.app import create_app
from specscope_server.kit.web.auth import OPEN_PATHS
from specscope_server.requests import examples as requests
from specscope_server.requests.schemas import Receipt, RequestPage
from specscope_server.series import examples as series
from specscope_server.series import schemas
from specscope_server.servers import examples as servers
from specscope_server.servers.schemas import LaunchDetail, LaunchList, ServerList
from specscope_server.settings import Settings
from specscope_server.sources import examples as sources
from specscope_server.sources.schemas import SourceList
from specscope_server.timing import examples as timing
from specscope_server.timing.schemas import (
    TimingComparison,
    TimingRanks,
    TimingSummary,
    TimingSurface,
    TimingTrend,
)
from specscope_server.traces import examples as traces
from specscope_server.traces.schemas import CaptureStates, TraceComparison, TraceList, TraceReceipt

DOCUMENT: dict[str, Any] = create_app(Settings(), engine=create_engine("sqlite://")).openapi()


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


OPERATIONS = list(operations())


@pytest.mark.parametrize(("name", "operation"), OPERATIONS, ids=[name for name, _ in OPERATIONS])
def test_every_operation_is_described(name: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["description"]
    content = operation["responses"]["200"]["content"]
    good = content.get("application/json") or next(iter(content.values()))  # a file has its own type
    assert good["example"]
    for parameter in operation.get("parameters", []):
        assert parameter["in"] == "path" or parameter["description"], f"{name}: {parameter['name']}"


@pytest.mark.parametrize(("name", "operation"), OPERATIONS, ids=[name for name, _ in OPERATIONS])
def test_every_error_is_a_documented_problem(name: str, operation: dict[str, Any]) -> None:
    errors = {status: answer for status, answer in operation["responses"].items() if status != "200"}
    assert "503" in errors
    assert ("401" in errors) is (name.partition(" ")[2] not in OPEN_PATHS)
    if "{" in name:
        assert "404" in errors
    if operation.get("parameters"):
        assert "422" in errors
    for answer in errors.values():
        content = answer["content"]["application/problem+json"]
        assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
        assert content["example"]["detail"]


def test_events_are_not_cut_into_buckets() -> None:
    names = {each["name"] for each in DOCUMENT["paths"]["/api/v1/events"]["get"]["parameters"]}
    assert {"from", "to"} <= names
    assert not names & {"step", "points"}


def test_the_csv_of_acceptance_shows_the_numbers_of_the_json() -> None:
    for path, value in (
        ("summary", acceptance.SUMMARY["accept_length"]["value"]),
        ("trend", acceptance.TREND["points"][0]["accept_length"]),
    ):
        content = DOCUMENT["paths"][f"/api/v1/acceptance/{path}"]["get"]["responses"]["200"]["content"]
        assert f",{value}" in content["text/csv"]["example"]


def test_the_problem_schema_and_everything_referred_to_is_there() -> None:
    known = DOCUMENT["components"]["schemas"]
    assert {"type", "title", "status", "detail", "instance"} <= set(known["Problem"]["properties"])
    wanted = set(_references(DOCUMENT))
    assert wanted
    assert {name.rpartition("/")[2] for name in wanted} <= set(known)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (ServerList, servers.SERVERS),
        (LaunchList, servers.LAUNCHES),
        (LaunchDetail, servers.LAUNCH_DETAIL),
        (SourceList, sources.SOURCES),
        (schemas.MetricCatalogue, series.CATALOGUE),
        (schemas.SeriesPage, series.SERIES),
        (schemas.QueryResult, series.QUERY),
        (schemas.LatestList, series.LATEST),
        (schemas.EventPage, series.EVENTS),
        (Receipt, requests.RECEIPT),
        (RequestPage, requests.REQUESTS),
        (AcceptanceSummary, acceptance.SUMMARY),
        (AcceptanceTrend, acceptance.TREND),
        (AcceptancePositions, POSITIONS),
        (TraceList, traces.LIST),
        (TraceReceipt, traces.RECEIPT),
        (TraceComparison, traces.COMPARISON),
        (CaptureStates, traces.CAPTURES),
        (TimingSummary, timing.SUMMARY),
        (TimingTrend, timing.TREND),
        (TimingSurface, timing.SURFACE),
        (TimingRanks, timing.RANKS),
        (TimingComparison, timing.COMPARISON),
    ],
)
def test_the_examples_have_the_shape_of_the_answers(model: Any, example: dict[str, Any]) -> None:
    assert model.model_validate(example).model_dump(mode="json", by_alias=True) == example


def test_the_document_is_served_and_no_page_loads_from_elsewhere(lone_web: Web) -> None:
    assert lone_web.api("/openapi.json") == DOCUMENT
    for path in ("/docs", "/redoc"):
        assert lone_web.get(path).status_code == 404
