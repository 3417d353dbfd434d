"""Decision 0002: the API's endpoints are plain functions."""

from __future__ import annotations

import inspect

from specscope_server.app import domain_routers


def test_no_endpoint_of_a_domain_is_a_coroutine() -> None:
    endpoints = [route.endpoint for _, router in domain_routers() for route in router.routes]
    assert endpoints
    assert [found.__qualname__ for found in endpoints if inspect.iscoroutinefunction(found)] == []
