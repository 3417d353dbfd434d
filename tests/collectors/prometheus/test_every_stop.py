"""Wherever reading a history is stopped, what is stored in the end is what one reading stores."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from tests.collectors.prometheus.recorded import measured
from tests.collectors.prometheus.stopping import (
    BEGIN_MS,
    Span,
    StoppingSink,
    StoredApi,
    eventful,
    failing,
    killed,
    opened,
    read_on,
    run,
    stored,
)
from tests.collectors.runner.engine import MemorySink, StoreDownError

from specscope_collectors.sources.prometheus import segment

API = StoredApi(eventful())
LENGTH_MS = 3_000_000
SPANS = {
    "scrape by scrape": Span(0, LENGTH_MS, raw_ms=86_400_000),
    "on a grid": Span(0, LENGTH_MS, raw_ms=0),
}


@pytest.fixture(autouse=True)
def _a_batch_for_each_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "BATCH", 1)


@pytest.fixture(scope="module", params=SPANS)
def span(request: pytest.FixtureRequest) -> Span:
    return SPANS[request.param]


@pytest.fixture(scope="module")
def expected(span: Span) -> MemorySink:
    """Return what one reading stores."""
    sink = MemorySink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "BATCH", 1)
        run(opened(API, sink, span), span)
    assert len(sink.batches) > 80
    return sink


def differing(expected: MemorySink, read: Callable[[int], MemorySink], every: int = 1) -> list[int]:
    """Return the stops after which something else is stored in the end."""
    wanted, stops = stored(expected), range(1, len(expected.batches) + 1, every)
    return [stop_at for stop_at in stops if stored(read(stop_at)) != wanted]


def test_killed_after_any_batch(span: Span, expected: MemorySink) -> None:
    def read(stop_at: int) -> MemorySink:
        sink = StoppingSink(stop_at, killed)
        with pytest.raises(StoreDownError):
            run(opened(API, sink, span), span)
        run(opened(API, sink, span), span)
        return sink.kept

    assert differing(expected, read) == []


def test_killed_after_every_batch(span: Span, expected: MemorySink) -> None:
    kept = MemorySink()
    for _ in range(len(expected.batches) - 1):
        with pytest.raises(StoreDownError):
            run(opened(API, StoppingSink(1, killed, kept), span), span)
    run(opened(API, kept, span), span)
    assert stored(kept) == stored(expected)


def test_a_batch_that_fails_is_read_again(span: Span, expected: MemorySink) -> None:
    def read(stop_at: int) -> MemorySink:
        sink = StoppingSink(stop_at, failing)
        history = opened(API, sink, span)
        with pytest.raises(StoreDownError):
            run(history, span)
        run(history, span)
        return sink.kept

    assert differing(expected, read, every=2) == []


def test_cancelled_while_a_thread_stores(span: Span, expected: MemorySink) -> None:
    """As by Ctrl-C, of which the thread knows nothing: it goes on to its end."""

    def read(stop_at: int) -> MemorySink:
        sink = cancelled_at(stop_at, span)
        run(opened(API, sink, span), span)
        return sink

    assert differing(expected, read, every=3) == []


def cancelled_at(stop_at: int, span: Span) -> MemorySink:
    holder: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    def cancelling(store: Callable[[], bool]) -> bool:
        loop, task = holder[0]
        has_heard = threading.Event()

        def turn(left: int) -> None:
            if left:
                loop.call_soon(turn, left - 1)
            else:
                has_heard.set()

        loop.call_soon_threadsafe(task.cancel)
        loop.call_soon_threadsafe(turn, 10)
        assert has_heard.wait(30)
        return store()

    sink = StoppingSink(stop_at, cancelling)

    async def reading() -> None:
        task = asyncio.create_task(read_on(opened(API, sink, span), span))
        holder.append((asyncio.get_running_loop(), task))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(reading())
    return sink.kept


def test_a_past_that_is_put_in_front_of_nothing_is_read_once() -> None:
    """The newest stretch has no scrape yet when an older one is asked for, and gets some afterwards."""
    early, late = eventful()[:20], eventful()[20:50]
    silent_ms, hour_ms = early[-1][0] - BEGIN_MS + 20_000, 3_600_000
    api = StoredApi([*early, *((at + hour_ms, body) for at, body in late if body is not None)])
    sink, wanted, raw_ms = MemorySink(), MemorySink(), 86_400_000
    run(opened(api, sink, Span(silent_ms, hour_ms, raw_ms)), Span(silent_ms, hour_ms, raw_ms))
    assert sink.batches
    assert not measured(sink)
    for span in (
        Span(0, hour_ms, raw_ms),
        Span(1_000, 2 * hour_ms, raw_ms),
        Span(2_000, 2 * hour_ms, raw_ms),
    ):
        run(opened(api, sink, span), span)
    span = Span(0, 2 * hour_ms, raw_ms)
    run(opened(api, wanted, span), span)
    assert measured(sink) == measured(wanted)
