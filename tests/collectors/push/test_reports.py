"""Pushing reports itself, and is told where to go and with which token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collectors.push.far import Bench, says
from tests.collectors.spool.spools import COLLECTOR

from specscope_collectors.config import OptionsError
from specscope_collectors.observations import HealthState
from specscope_collectors.push_options import PushOptions
from specscope_collectors.push_status import read_status


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


def test_a_wrong_clock_is_told(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.far.refused = {"future": 2, "negative_count": 1}
    bench.fill(1)
    bench.pusher.step()
    bench.times.seconds += 20
    bench.pusher.step()
    assert bench.pusher.status().refused_times == 2
    health = bench.far.health()
    assert (health.state, "2 observations were refused" in health.detail) == (HealthState.PARTIAL, True)
    assert "clocks" in health.remedy


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
    assert sent == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_token_that_is_exchanged_while_waiting_is_used_at_once(
    make: Callable[..., Bench], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    bench = make(token_file=file, health_seconds=10**9)
    bench.fill(1)
    bench.pusher.step()
    bench.fill(2)
    bench.far.answers = [says(401)]
    bench.pusher.step()
    assert read_status(bench.spool.folder).state == "denied", "the file says so at once"
    file.write_text("new")
    bench.pusher.step()
    assert bench.far.requests[-1].headers["authorization"] == "Bearer new"
    assert bench.far.stored() == [1, 2]


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
