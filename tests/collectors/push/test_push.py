"""What the pusher makes of every answer: go on, wait, send less, set aside; never lose, never hurry."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import zstandard
from tests.collectors.spool.spools import COLLECTOR, TARGET, Times, decoded, make_batch, sequences

from specscope_collectors.config import OptionsError
from specscope_collectors.observations import Batch, Event, HealthState, SourceHealth
from specscope_collectors.push import Pusher
from specscope_collectors.push_options import PushOptions
from specscope_collectors.spool import Spool, SpoolLimits
from specscope_collectors.spool_sink import SpoolSink

Answer = Callable[[httpx.Request], httpx.Response]


class Far:
    """A server that applies as the real one does, unless it was told to answer something else."""

    def __init__(self) -> None:
        self.bodies: list[list[Batch]] = []
        self.requests: list[httpx.Request] = []
        self.answers: list[Answer] = []
        self.last: dict[str, int] = {}
        self.also: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.method == "GET":
            name = request.url.params["collector_id"]
            return httpx.Response(200, json={"collector_id": name, "sequence": self.last.get(name, 0)})
        if self.answers:
            return self.answers.pop(0)(request)
        return self.apply(request)

    def apply(self, request: httpx.Request) -> httpx.Response:
        batches = unpacked(request)
        self.bodies.append(batches)
        items: list[dict[str, Any]] = []
        for batch in batches:
            last = self.last.get(batch.collector_id, 0)
            is_new = batch.sequence > last
            self.last[batch.collector_id] = max(last, batch.sequence)
            items.append({
                "collector_id": batch.collector_id, "sequence": batch.sequence,
                "outcome": "applied" if is_new else "repeated", "applied_up_to": None if is_new else last,
                "also_collected_by": self.also,
            })  # fmt: skip
        applied = sum(item["outcome"] == "applied" for item in items)
        receipt = {"applied": applied, "repeated": len(items) - applied, "batches": items}
        return httpx.Response(200, json=receipt)

    def stored(self, collector: str = "watch:a") -> list[int]:
        """Return the sequences that were applied, in order."""
        seen: list[int] = []
        for batch in (batch for body in self.bodies for batch in body):
            if batch.collector_id.startswith(collector + "#") and batch.sequence not in seen:
                seen.append(batch.sequence)
        return seen

    def health(self) -> SourceHealth:
        """Return the newest report of pushing."""
        found = [
            record
            for body in self.bodies
            for batch in body
            for record in batch.observations
            if isinstance(record, SourceHealth)
        ]
        return found[-1]


def unpacked(request: httpx.Request) -> list[Batch]:
    if request.headers["content-encoding"] == "gzip":
        content = zlib.decompress(request.content, 31)
    else:
        reader = zstandard.ZstdDecompressor().stream_reader(request.content, read_across_frames=True)
        content = reader.read()
    return msgspec.msgpack.decode(content, type=list[Batch])


def says(status: int, *, place: int | None = None, **headers: str) -> Answer:
    """Return an answer with this status, perhaps about one batch."""
    problem: dict[str, Any] = {"detail": f"status {status}"}
    if place is not None:
        problem["errors"] = [{"location": f"batches.{place}", "reason": "r", "input": "i"}]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx.Response(status, json=problem, headers=named)


class Bench:
    """A pusher whose clock the test sets."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.times = Times(seconds=1.0)
        self.far = Far()
        self.spool = Spool(folder, SpoolLimits(), self.times.wall, self.times.monotonic)
        self.sink = SpoolSink(self.spool, COLLECTOR, self.times.wall)
        chosen = PushOptions(server="http://127.0.0.1:8200", **options)
        client = httpx.Client(transport=httpx.MockTransport(self.far))
        self.pusher = Pusher(
            self.spool, self.sink, chosen, COLLECTOR, self.times.wall, self.times.monotonic, client
        )

    def fill(self, *numbers: int, **fields: Any) -> None:
        for number in numbers:
            assert self.sink.apply(make_batch(number, **fields))

    def drain(self, most: int = 50) -> list[float]:
        """Step, with the clock going on as asked, until nothing waits; return the waits."""
        waits = []
        while self.spool.count and len(waits) < most:
            waits.append(self.pusher.step())
            self.times.seconds += waits[-1]
        return waits


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def build(**options: Any) -> Bench:
        made.append(Bench(tmp_path / "spool", **options))
        return made[-1]

    yield build
    for bench in made:
        bench.spool.close()


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make(health_seconds=10**9)


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


def test_pushing_reports_itself(make: Callable[..., Bench]) -> None:
    bench = make(health_seconds=15)
    bench.pusher.step()
    first = bench.far.bodies[0][0]
    assert first.target == COLLECTOR
    assert first.collector_id == f"collector:gpu1/push#{bench.spool.instance}"
    assert (bench.far.health().state, bench.far.health().detail) == (
        HealthState.OK, "nothing waits in the spool",
    )  # fmt: skip
    bench.fill(1, 2)
    bench.times.wall_ms += 90_000
    bench.times.seconds += 15
    bench.pusher.step()
    assert bench.far.health().detail == "2 batches wait in the spool, the oldest for 90 s"
    assert len(bench.far.bodies[-1]) == 3, "with what waits, in one request"
    bench.far.last[first.collector_id] = 70
    for _ in range(2):
        bench.times.seconds += 15
        bench.pusher.step()
    assert bench.far.bodies[-1][-1].sequence == 71, "it asks where the server is"


def test_a_clock_that_is_set_back_makes_no_negative_age(bench: Bench) -> None:
    bench.fill(1)
    bench.times.wall_ms -= 3_600_000
    assert bench.pusher.status().oldest_seconds == 0


def test_another_collector_of_the_same_server_is_told(make: Callable[..., Bench]) -> None:
    bench = make(health_seconds=15)
    bench.far.also = ["watch:a#other"]
    bench.fill(1)
    bench.pusher.step()
    bench.times.seconds += 15
    bench.pusher.step()
    assert bench.far.health().state is HealthState.PARTIAL
    assert "gpu1:30000 is watched by another collector too: watch:a#other" in bench.far.health().detail
    assert "stop one of them" in bench.far.health().remedy
    bench.far.also = []
    bench.fill(2)
    bench.pusher.step()
    bench.times.seconds += 15
    bench.pusher.step()
    assert bench.far.health().state is HealthState.OK


def test_a_copied_spool_is_noticed_and_catches_up(bench: Bench) -> None:
    bench.far.last[bench.spool.name_at_server("watch:a")] = 7
    bench.fill(1)
    bench.pusher.step()
    assert bench.spool.resume("watch:a").sequence == 7
    assert not bench.sink.apply(make_batch(2)), "the collector resumes"
    bench.fill(8)
    bench.pusher.step()
    assert bench.far.stored()[-1] == 8


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
    bench.pusher._monotonic = __import__("time").monotonic
    bench.pusher.start()
    bench.fill(*range(1, 30))
    assert bench.pusher.stop(10)
    assert bench.far.stored() == list(range(1, 30))


def test_a_token_is_sent_and_read_again_when_it_is_refused(
    make: Callable[..., Bench], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    bench = make(token_file=file, health_seconds=10**9)
    bench.fill(1)
    bench.far.answers = [says(401)]
    bench.pusher.step()
    file.write_text("new\n")
    bench.far.answers = [says(403)]
    bench.pusher.step()
    bench.drain()
    sent = [request.headers["authorization"] for request in bench.far.requests if request.method == "POST"]
    assert sent == ["Bearer old", "Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"", "holds no token"), (b"a\nb", "holds no token"), (b"\xff", "no text")],
)
def test_a_token_file_that_holds_none(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OptionsError, match=rf"the token file {file}.*{words}"):
        PushOptions(server="http://a", token_file=file)


@pytest.mark.parametrize("server", ["gpu1:8200", "ftp://a", "http://", "http://a?x=1", "", "http://u:p@a"])
def test_a_server_that_cannot_be(server: str) -> None:
    with pytest.raises(OptionsError, match="--server") as caught:
        PushOptions(server=server)
    assert "u:p" not in str(caught.value)


def test_a_prefix_is_kept_and_clear_text_is_known() -> None:
    options = PushOptions(server="http://example.org/specscope/")
    assert options.url == "http://example.org/specscope/api/v1/ingest"
    assert options.is_clear_text
    assert not PushOptions(server="http://localhost:1").is_clear_text
    assert not PushOptions(server="https://example.org").is_clear_text


def test_bodies_lie_ready_in_the_spool(bench: Bench) -> None:
    """What is sent is what lies in the spool, byte by byte: nothing is packed twice."""
    bench.fill(1, 2)
    waiting = bench.spool.waiting(9, 10**9)
    assert [decoded(each).sequence for each in waiting] == [1, 2]
    bench.pusher.step()
    assert b"".join(each.entry.body for each in waiting) in bench.far.requests[-1].content
