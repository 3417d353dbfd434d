"""Decision 0002: the API's endpoints are plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from specscope_server.app import domain_routers


def endpoints_of(routes: Iterable[Any]) -> Iterator[Callable[..., Any]]:
    """Yield the endpoints, those of included routers too."""
    for route in routes:
        if hasattr(route, "endpoint"):
            yield route.endpoint
        elif hasattr(route, "original_router"):
            yield from endpoints_of(route.original_router.routes)


def test_no_endpoint_of_a_domain_is_a_coroutine() -> None:
    endpoints = [found for _, router in domain_routers() for found in endpoints_of(router.routes)]
    assert {"series_query", "summary", "sources"} <= {found.__name__ for found in endpoints}
    assert [found.__qualname__ for found in endpoints if inspect.iscoroutinefunction(found)] == []
