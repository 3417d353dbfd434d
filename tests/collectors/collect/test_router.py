"""An SGLang router's list of workers, old and new form, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.collectors.fetch.servers import Answering, Request, always, response, serving

from specscope_collectors.config import CollectorOptions
from specscope_collectors.discoveries import Answer, DiscoveryError
from specscope_collectors.discovery.sglang_router import Config, SglangRouter, read_workers
from specscope_collectors.observations import HealthState

OPTIONS = CollectorOptions(scrape_timeout_seconds=2, api_key="key-of-the-workers")


def json_of(value: Any, status: str = "200 OK") -> Answering:
    return always(response(json.dumps(value).encode(), status, content_type="application/json"))


class Router:
    """Answers by path; remembers the headers of requests."""

    def __init__(self, **paths: Answering) -> None:
        self.paths = paths
        self.authorizations: list[str | None] = []

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.authorizations.append(request.headers.get("authorization"))
        answering = self.paths.get(request.path.strip("/"), json_of({"detail": "Not Found"}, "404 Not Found"))
        await answering(request, writer)


def worker(url: str, **more: Any) -> dict[str, Any]:
    """Return a worker as newer routers describe it."""
    return {
        "id": "w-1", "url": url, "model_id": "llama", "priority": 50, "cost": 1.0, "worker_type": "regular",
        "is_healthy": True, "load": 0, "connection_mode": "Http", **more,
    }  # fmt: skip


def details(*workers: dict[str, Any]) -> Answering:
    stats = {"total_workers": len(workers), "healthy_workers": len(workers), "total_load": 0}
    return json_of({"workers": list(workers), "total": len(workers), "stats": stats})


def look(url: str, **config: Any) -> Answer:
    async def go() -> Answer:
        router = SglangRouter(Config(url=url, **config), OPTIONS)
        try:
            return await router.look()
        finally:
            await router.close()

    return asyncio.run(go())


def urls(answer: Answer) -> list[str]:
    return [listed.url for listed in answer.listed]


def test_details_of_newer_routers() -> None:
    decode = worker("http://127.0.0.1:30002", worker_type="decode", is_healthy=False)
    with serving(Router(workers=details(worker("http://127.0.0.1:30001/"), decode))) as router:
        answer = look(router.url)
        assert router.paths() == ["/workers"]
    assert urls(answer) == ["http://127.0.0.1:30001", "http://127.0.0.1:30002"]
    assert dict(answer.listed[1].labels) == {"worker_type": "decode", "model_id": "llama"}


def test_addresses_of_older_routers() -> None:
    with serving(Router(list_workers=json_of({"urls": ["http://127.0.0.1:1", "https://gpu2:2"]}))) as router:
        answer = look(router.url)
        assert router.paths() == ["/workers", "/list_workers"]
    assert urls(answer) == ["http://127.0.0.1:1", "https://gpu2:2"]


def test_a_worker_listed_per_rank_is_one_server() -> None:
    ranks = [worker(f"http://gpu1:30000@{rank}", worker_type="prefill") for rank in range(3)]
    with serving(Router(workers=details(*ranks))) as router:
        assert set(urls(look(router.url))) == {"http://gpu1:30000"}


def test_the_router_gets_its_own_key_and_never_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Router(workers=details())
    monkeypatch.setenv("ROUTER_KEY", "key-of-the-router")
    with serving(scripted) as router:
        look(router.url)
        look(router.url, router_api_key_env="ROUTER_KEY")
    assert scripted.authorizations == [None, "bearer key-of-the-router"]


def test_hostile_addresses_are_refused() -> None:
    bad = ["grpc://gpu1:20000", "file:///etc/passwd", "gopher://x", "javascript:alert(1)", "//gpu1"]
    with serving(Router(workers=details(*map(worker, bad)))) as router:
        answer = look(router.url)
    assert (answer.listed, len(answer.refused)) == ((), len(bad))
    assert answer.refused[0] == (
        "grpc://gpu1:20000: only http:// and https:// workers have metrics that can be read"
    )


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "0xa9fea9fe"])
def test_link_local_addresses_are_refused_also_from_here(host: str) -> None:
    for asked in ("http://router.example:30000", "http://127.0.0.1:30000"):
        router = SglangRouter(Config(url=asked), OPTIONS)
        assert "link-local" in router._refusal(f"http://{host}/latest")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "[::ffff:127.0.0.1]"]
)
def test_a_remote_routers_loopback_is_not_ours(host: str) -> None:
    router = SglangRouter(Config(url="http://router.example:30000"), OPTIONS)
    assert "router's own machine" in router._refusal(f"http://{host}:30001")
    assert router._refusal("http://10.0.0.7:30001") == ""


DEEP = b'{"x":' + b"[" * 100_000


@pytest.mark.parametrize(
    ("paths", "state", "words"),
    [
        ({}, HealthState.NOT_THIS_ENGINE, "lists no workers (HTTP 404 for /workers and /list_workers)"),
        ({"workers": json_of({}, "401 Unauthorized")}, HealthState.UNAUTHORIZED, "none was sent"),
        ({"workers": json_of({}, "500 Oh")}, HealthState.HTTP_ERROR, "answered HTTP 500"),
        ({"workers": json_of([1])}, HealthState.NOT_THIS_ENGINE, "something else than a list of workers"),
        ({"workers": always(response(b"<html>"))}, HealthState.NOT_THIS_ENGINE, "something else"),
        ({"workers": always(response(DEEP))}, HealthState.NOT_THIS_ENGINE, "recursion"),
    ],
)
def test_errors_have_a_state_and_words(paths: dict[str, Answering], state: HealthState, words: str) -> None:
    with serving(Router(**paths)) as router, pytest.raises(DiscoveryError) as caught:
        look(router.url)
    assert caught.value.state is state
    assert words in str(caught.value)
    assert caught.value.remedy


def test_a_router_that_is_away() -> None:
    with pytest.raises(DiscoveryError) as caught:
        look("http://127.0.0.1:9")
    assert caught.value.state is HealthState.UNREACHABLE


def test_both_forms_are_told_by_their_keys() -> None:
    assert [each.url for each in read_workers(b'{"urls": ["http://a:1"]}')] == ["http://a:1"]
    assert [each.url for each in read_workers(b'{"workers": [{"url": "http://a:1"}]}')] == ["http://a:1"]
