"""What the pusher makes of every answer: go on, wait, send less, set aside; never lose, never hurry."""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Iterator

import httpx
import msgspec
import pytest
import zstandard
from tests.collectors.push.far import Bench, proxy_says, says, unpacked
from tests.collectors.spool.spools import TARGET, decoded, make_batch, sequences

from specscope_collectors.observations import Batch, Event


def test_what_waits_is_sent_in_order_and_forgotten(bench: Bench) -> None:
    bench.fill(1, 2, 3)
    assert bench.pusher.step() == 1.0
    assert bench.far.stored() == [1, 2, 3]
    assert bench.spool.count == 0
    status = bench.pusher.status()
    assert (status.state, status.sent, status.repeated, status.waiting) == ("ok", 3, 0, 0)
    request = bench.far.requests[-1]
    assert request.url == "http://127.0.0.1:8200/api/v1/ingest"
    assert request.headers["content-type"] == "application/msgpack"
    assert "authorization" not in request.headers


def test_an_answer_that_was_lost_is_made_up_for(bench: Bench) -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        bench.far.apply(request)
        raise httpx.ReadError("cut")

    bench.fill(1, 2)
    bench.far.answers = [lost, lost]
    bench.drain()
    assert bench.far.stored() == [1, 2]
    assert len(bench.far.bodies) == 3
    assert bench.pusher.status().repeated == 2
    assert bench.spool.resume("watch:a").sequence == 2, "no jump: it was sent before"


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504, 520])
def test_waits_grow_at_random_and_end(bench: Bench, status: int) -> None:
    bench.fill(1)
    bench.far.answers = [says(status)] * 12
    waits = bench.drain()
    assert len(waits) == 13
    limits = [min(2.0**failures, 60.0) for failures in range(12)]
    assert all(0.1 <= wait <= limit for wait, limit in zip(waits, limits, strict=False))
    assert len(set(waits[3:12])) > 5, "at random"
    assert bench.far.stored() == [1]


def test_the_server_says_when_to_come_again(bench: Bench) -> None:
    bench.fill(1)
    bench.far.answers = [says(503, retry_after="7"), says(429, retry_after="99999999")]
    bench.far.answers += [says(503, retry_after="Mon, 30 Nov 2026 00:00:00 GMT")]
    waits = bench.drain()
    assert 7 <= waits[0] <= 8
    assert waits[1] == 3_600
    assert waits[2] < 10


@pytest.mark.parametrize("status", [401, 403, 404, 405, 302])
def test_what_a_person_must_change_is_loud_and_slow(bench: Bench, status: int) -> None:
    bench.fill(1)
    bench.far.answers = [says(status)] * 3
    assert bench.drain()[:3] == [60.0] * 3
    assert bench.far.stored() == [1]


@pytest.mark.parametrize(
    "answer", ["<html>log in</html>", '{"applied": 1}', '{"applied": 0, "repeated": 0, "batches": []}', "[]"]
)
def test_a_page_that_is_no_receipt_acknowledges_nothing(bench: Bench, answer: str) -> None:
    bench.fill(1)
    bench.far.answers = [lambda _: httpx.Response(200, text=answer)]
    assert bench.pusher.step() == 60.0
    assert (bench.spool.count, bench.pusher.status().state) == (1, "wrong_server")
    bench.drain()
    assert bench.far.stored() == [1]


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_what_a_proxy_answers_says_nothing_about_a_batch(bench: Bench, status: int) -> None:
    """TLS spoken to a plain port is 400, for example: every batch would be given up for it, in no time."""
    bench.fill(*range(1, 9))
    bench.far.answers = [proxy_says(status)] * 60
    waits = bench.drain(100)
    assert sum(waits) > 60
    assert (bench.far.stored(), bench.spool.counts.set_aside) == (list(range(1, 9)), 0)


def test_a_proxy_takes_no_large_batch(bench: Bench) -> None:
    """A limit of a proxy is a fact: what is too large alone does not block the others."""

    def small_only(request: httpx.Request) -> httpx.Response:
        return bench.far.apply(request) if len(request.content) < 70_000 else proxy_says(413)(request)

    label = random.Random(1).randbytes(80_000).hex()
    large = msgspec.structs.replace(make_batch(2), launch_key=label)
    bench.fill(1)
    bench.sink.apply(large)
    bench.fill(3)
    bench.far.answers = [small_only] * 30
    bench.drain()
    assert (bench.far.stored(), bench.spool.counts.set_aside) == ([1, 3], 1)


def test_a_notice_that_is_set_aside_makes_no_other(bench: Bench) -> None:
    bench.fill(1)
    bench.far.answers = [says(422)] * 9
    for _ in range(5):
        bench.pusher.step()
    assert bench.spool.counts.set_aside == 2, "the batch, and the event about it"
    assert bench.spool.count == 0


def endless(bench: Bench, seconds: float) -> Iterator[bytes]:
    """Yield an answer that never ends, a piece every so often."""
    while True:
        bench.times.seconds += seconds
        yield b"x" * 65_536


@pytest.mark.parametrize(("seconds", "told"), [(20.0, "did not end within 60 s"), (0.0, "is over")])
def test_an_answer_that_does_not_end(bench: Bench, seconds: float, told: str) -> None:
    bench.fill(1)
    bench.far.answers = [lambda _: httpx.Response(200, content=endless(bench, seconds))]
    bench.pusher.step()
    assert told in bench.pusher.status().problem
    bench.drain()
    assert bench.far.stored() == [1]


def test_a_spool_that_cannot_be_read_for_a_while(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many open files, for example: it must not end the sending for good."""
    opening = os.open

    def refuse(path: object, *how: int, **more: int) -> int:
        if str(path).endswith(".spool"):
            raise OSError(errno.EMFILE, "Too many open files")
        return opening(path, *how, **more)  # type: ignore[arg-type]

    bench.fill(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert bench.pusher.step() > 0
        assert "Too many open files" in bench.pusher.status().problem
    bench.drain()
    assert bench.far.stored() == [1]


def test_too_large_is_halved_down_to_one(bench: Bench) -> None:
    def small_only(request: httpx.Request) -> httpx.Response:
        return bench.far.apply(request) if len(unpacked(request)) == 1 else says(413)(request)

    bench.fill(*range(1, 9))
    bench.far.answers = [small_only] * 60
    bench.drain(60)
    assert bench.far.stored() == list(range(1, 9))
    assert bench.spool.counts.set_aside == 0


def test_one_that_is_too_large_alone_is_set_aside(bench: Bench) -> None:
    def without_two(request: httpx.Request) -> httpx.Response:
        names = [batch.sequence for batch in unpacked(request) if batch.collector_id.startswith("watch:a")]
        return says(413)(request) if 2 in names else bench.far.apply(request)

    bench.fill(1, 2, 3)
    bench.far.answers = [without_two] * 30
    bench.drain()
    assert bench.far.stored() == [1, 3]
    assert bench.spool.counts.set_aside == 1


@pytest.mark.parametrize("status", [400, 422])
def test_a_batch_that_can_never_be_applied_does_not_block_the_others(bench: Bench, status: int) -> None:
    def third_is_bad(request: httpx.Request) -> httpx.Response:
        batches = unpacked(request)
        places = [place for place, batch in enumerate(batches) if batch.sequence == 3]
        return says(status, place=places[0])(request) if places else bench.far.apply(request)

    bench.fill(1, 2, 3, 4, 5)
    bench.far.answers = [third_is_bad] * 9
    bench.drain()
    assert bench.far.stored() == [4, 5], "the others before it were applied by the server that named it"
    [file] = (bench.spool.folder / "set-aside").iterdir()
    kept = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(file.read_bytes()), type=Batch)
    assert kept.sequence == 3
    events = [
        record for body in bench.far.bodies for batch in body for record in batch.observations
        if isinstance(record, Event)
    ]  # fmt: skip
    assert [event.kind for event in events] == ["batch_set_aside"]
    assert events[0].detail["sequence"] == 3
    targets = {batch.target for body in bench.far.bodies for batch in body if "spool#" in batch.collector_id}
    assert targets == {TARGET}, "the event is about the server whose data is missing"


def test_a_bad_batch_that_nobody_names_is_found_by_halving(bench: Bench) -> None:
    def unnamed(request: httpx.Request) -> httpx.Response:
        is_bad = any(batch.sequence == 6 for batch in unpacked(request))
        return says(422)(request) if is_bad else bench.far.apply(request)

    bench.fill(*range(1, 11))
    bench.far.answers = [unnamed] * 60
    bench.drain(60)
    assert bench.far.stored() == [1, 2, 3, 4, 5, 7, 8, 9, 10]


def test_a_server_that_fails_over_one_batch_gets_long_to_recover(make: Callable[..., Bench]) -> None:
    bench = make(stuck_seconds=1_000, health_seconds=10**9)

    def second_fails(request: httpx.Request) -> httpx.Response:
        places = [place for place, batch in enumerate(unpacked(request)) if batch.sequence == 2]
        return says(500, place=places[0])(request) if places else bench.far.apply(request)

    bench.fill(1, 2, 3)
    bench.far.answers = [second_fails] * 500
    waits = bench.drain(500)
    assert sum(waits) >= 1_000
    assert max(waits) <= 60
    assert (bench.far.stored(), bench.spool.counts.set_aside) == ([3], 1)


def test_a_server_that_recovers_loses_nothing(bench: Bench) -> None:
    bench.fill(1, 2, 3)
    bench.far.answers = [says(500)] * 10
    bench.drain()
    assert (bench.far.stored(), bench.spool.counts.set_aside) == ([1, 2, 3], 0)


def test_a_proxy_that_knows_no_zstd_is_sent_gzip(bench: Bench) -> None:
    bench.fill(1, 2)
    bench.far.answers = [says(415)]
    bench.drain()
    assert bench.far.stored() == [1, 2]
    assert [request.headers.get("content-encoding") for request in bench.far.requests[-2:]] == [
        "zstd",
        "gzip",
    ]


def test_requests_are_bounded_packed_and_unpacked(make: Callable[..., Bench]) -> None:
    bench = make(most_batches=10, most_raw_bytes=5_000, health_seconds=10**9)
    bench.fill(*range(1, 41))
    assert bench.pusher.step() == 0.0, "there is more"
    bench.drain()
    assert bench.far.stored() == list(range(1, 41))
    mine = [[each for each in body if "watch:a" in each.collector_id] for body in bench.far.bodies]
    sizes = [sum(len(msgspec.msgpack.encode(each)) for each in body) for body in mine]
    assert max(map(len, mine)) <= 10
    assert max(sizes) <= 5_000


def test_a_copied_spool_is_noticed_and_catches_up(bench: Bench) -> None:
    bench.far.last[bench.spool.name_at_server("watch:a")] = 7
    bench.fill(1)
    bench.pusher.step()
    assert bench.spool.resume("watch:a").sequence == 7
    assert not bench.sink.apply(make_batch(2)), "the collector resumes"
    bench.fill(8)
    bench.pusher.step()
    assert bench.far.stored()[-1] == 8
    assert bench.pusher.status().collided == 1
    [event] = [
        record for body in bench.far.bodies for batch in body for record in batch.observations
        if isinstance(record, Event)
    ]  # fmt: skip
    assert (event.kind, "this spool did not send" in event.message) == ("spool_copied", True)


def test_what_is_left_is_sent_at_the_end_within_the_time(bench: Bench) -> None:
    bench.fill(1, 2)
    assert bench.pusher.stop(5)
    assert bench.far.stored() == [1, 2]


def test_the_end_does_not_wait_for_a_server_that_is_away(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "time.sleep", lambda seconds: setattr(bench.times, "seconds", bench.times.seconds + seconds)
    )
    bench.fill(1)
    bench.far.answers = [says(503)] * 1_000
    begun = bench.times.seconds
    assert not bench.pusher.stop(5)
    assert bench.times.seconds - begun <= 5.5
    assert sequences(bench.spool) == [1], "it is sent after the next start"


def test_a_thread_pushes_until_it_is_stopped(make: Callable[..., Bench]) -> None:
    bench = make(linger_seconds=0.001)
    bench.pusher._monotonic = time.monotonic
    bench.pusher.start()
    bench.fill(*range(1, 30))
    assert bench.pusher.stop(10)
    assert bench.far.stored() == list(range(1, 30))


def test_bodies_lie_ready_in_the_spool(bench: Bench) -> None:
    """What is sent is what lies in the spool, byte by byte: nothing is packed twice."""
    bench.fill(1, 2)
    waiting = bench.spool.waiting(9, 10**9)
    assert [decoded(each).sequence for each in waiting] == [1, 2]
    bench.pusher.step()
    assert b"".join(each.entry.body for each in waiting) in bench.far.requests[-1].content
