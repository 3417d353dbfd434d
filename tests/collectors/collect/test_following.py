"""A real file is followed while servers are scraped: what changed takes effect, what did not is let alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog
from tests.collectors.collect.jobs import wait_until
from tests.collectors.fetch.servers import Server, serving
from tests.collectors.runner.engine import Engine, MemorySink

from specscope_collectors import reload_job
from specscope_collectors.collect_file import load_collect_file
from specscope_collectors.compose import compose, reloading_on_hangup
from specscope_collectors.observations import HealthState, Launch, SourceHealth
from specscope_collectors.runner import Runner

OPTIONS = "[options]\nscrape_interval_seconds = 0.1\nscrape_timeout_seconds = 2\n"


def target(server: Server, **more: str) -> str:
    return f"[[target]]\nurl = '{server.url}'\n" + "".join(
        f"{key} = {value}\n" for key, value in more.items()
    )


@dataclass
class Fleet:
    """Two engines and a file that says which of them are watched."""

    path: Path
    sink: MemorySink
    one: Server
    two: Server
    runner: Runner | None = None

    def write(self, text: str) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(OPTIONS + text, encoding="utf-8")
        fresh.rename(self.path)

    def start(self, text: str) -> Runner:
        self.write(text)
        self.runner = compose(load_collect_file(self.path), self.sink)
        self.runner.start()
        return self.runner

    def scrapes(self, server: Server) -> int:
        batches = [batch for batch in self.sink.batches if batch.target.base_url == server.url]
        return len([batch for batch in batches if self.states(batch.observations) != [HealthState.GONE]])

    @staticmethod
    def states(observations: object) -> list[HealthState]:
        assert isinstance(observations, tuple)
        return [each.state for each in observations if isinstance(each, SourceHealth)][:1]

    def file_states(self) -> list[HealthState]:
        return [health.state for health in self.sink.all(SourceHealth) if health.source == "collect_file"]

    def checkpoint(self) -> bytes:
        """Return what the follower of the file remembers."""
        found = [resume for name, resume in self.sink.resumes.items() if name.endswith("/collect_file")]
        return (found[0].checkpoint if found else None) or b""

    def until_scraped(self, server: Server, more: int = 2) -> None:
        seen = self.scrapes(server)
        wait_until(lambda: self.scrapes(server) >= seen + more)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(reload_job, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(reload_job, "REPORT_SECONDS", 0.5)
    with serving(Engine()) as one, serving(Engine()) as two:
        made = Fleet(tmp_path / "collect.toml", MemorySink(), one, two)
        try:
            yield made
        finally:
            if made.runner is not None:
                made.runner.stop()


def test_servers_come_and_go_with_the_file(fleet: Fleet) -> None:
    runner = fleet.start(target(fleet.one))
    fleet.until_scraped(fleet.one)
    fleet.write(target(fleet.two) + target(fleet.one))
    fleet.until_scraped(fleet.two)
    fleet.write(target(fleet.two))
    wait_until(lambda: HealthState.GONE in fleet.sink.states())
    (gone,) = [each for each in fleet.sink.all(SourceHealth) if each.state is HealthState.GONE]
    assert (gone.url, gone.detail) == (f"{fleet.one.url}/metrics", f"no longer listed by {fleet.path}")
    stopped = fleet.scrapes(fleet.one)
    fleet.until_scraped(fleet.two)
    assert fleet.scrapes(fleet.one) == stopped
    assert [each.base_url for each in runner.targets] == [fleet.two.url]
    fleet.write(target(fleet.two) + target(fleet.one))
    fleet.until_scraped(fleet.one)
    assert len(fleet.sink.launches()) == 2  # it is the same server with the same launch as before
    sequences = [batch.sequence for batch in fleet.sink.batches if batch.target.base_url == fleet.one.url]
    assert sequences == list(range(1, len(sequences) + 1))


def test_a_broken_file_is_refused_loudly_and_the_former_one_stays(fleet: Fleet) -> None:
    fleet.start(target(fleet.one))
    fleet.until_scraped(fleet.one)
    with structlog.testing.capture_logs() as logs:
        fleet.write("[[target]]\nurll = 'x'\n")
        wait_until(lambda: HealthState.INVALID in fleet.file_states())
    refused = [entry for entry in logs if "refused" in entry["event"]]
    assert len(refused) == 1
    assert "Did you mean 'url'?" in refused[0]["problems"][0]
    health = fleet.sink.health("collect_file")
    assert (health.state, health.refused, health.url) == (HealthState.INVALID, 2, str(fleet.path))
    assert "Did you mean 'url'?" in health.detail
    assert "collect_file_refused" in fleet.sink.events()
    fleet.until_scraped(fleet.one)
    fleet.path.unlink()
    wait_until(lambda: "cannot be read" in fleet.sink.health("collect_file").detail)
    fleet.until_scraped(fleet.one)
    fleet.write(target(fleet.two))
    fleet.until_scraped(fleet.two)
    wait_until(lambda: fleet.file_states()[-1] is HealthState.OK)
    assert "collect_file_changed" in fleet.sink.events()


def test_a_job_that_cannot_be_refuses_the_whole_file(fleet: Fleet) -> None:
    fleet.start(target(fleet.one))
    fleet.until_scraped(fleet.one)
    twice = f"[[discover]]\nkind = 'static'\ntargets = ['{fleet.two.url}']\nmax_targets = 0\n"
    fleet.write(target(fleet.two) + twice)
    wait_until(lambda: HealthState.INVALID in fleet.file_states())
    fleet.until_scraped(fleet.one)
    assert fleet.scrapes(fleet.two) == 0


def test_what_stayed_the_same_is_not_restarted(fleet: Fleet) -> None:
    fleet.start(target(fleet.one) + target(fleet.two))
    fleet.until_scraped(fleet.one)
    asked = fleet.one.paths().count("/server_info")
    for number in range(5):
        fleet.write(target(fleet.two, name=f"'two-{number}'") + target(fleet.one))
        wait_until(lambda n=number: any(b.target.name == f"two-{n}" for b in fleet.sink.batches))
    assert fleet.one.paths().count("/server_info") == asked  # a restarted collector asks again


def test_a_changed_key_takes_effect(fleet: Fleet, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("key-of-today")
    fleet.start(target(fleet.one, api_key_file=f"'{key}'") + target(fleet.two))
    fleet.until_scraped(fleet.two)
    key.write_text("key-of-tomorrow")
    sent = "bearer key-of-tomorrow"
    wait_until(lambda: sent in {each.headers.get("authorization") for each in fleet.one.requests})
    assert {each.headers.get("authorization") for each in fleet.two.requests} == {None}


def test_labels_travel_with_the_launch(fleet: Fleet) -> None:
    fleet.start(target(fleet.one, labels="{ rack = 'r7' }") + target(fleet.two))
    wait_until(lambda: len(fleet.sink.launches()) == 2)
    launches: list[Launch] = fleet.sink.launches()
    assert [each.config.get("target_labels") for each in launches if "target_labels" in each.config] == [
        {"rack": "r7"}
    ]


def test_file_sd_finds_servers_and_a_flapping_list_makes_no_new_ones(fleet: Fleet, tmp_path: Path) -> None:
    listing = tmp_path / "targets.json"

    def write(*servers: Server) -> None:
        fresh = listing.with_suffix(".new")
        fresh.write_text(json.dumps([{"targets": [each.url.partition("//")[2] for each in servers]}]))
        fresh.rename(listing)

    write(fleet.one, fleet.two)
    runner = fleet.start(
        f"[[discover]]\nkind = 'file_sd'\nfiles = ['{listing}']\ninterval_seconds = 1\ngrace_seconds = 30\n"
    )
    fleet.until_scraped(fleet.one)
    fleet.until_scraped(fleet.two)
    name = f"discover_file_sd:{listing}"
    for servers in ((fleet.one,), (fleet.one, fleet.two), (fleet.two,), ()):
        write(*servers)
        runner.wake("discover_")
        fleet.until_scraped(fleet.two)
    listing.write_text("[{")
    runner.wake("discover_")
    wait_until(lambda: fleet.sink.health(name).state is HealthState.INVALID)
    fleet.until_scraped(fleet.one)
    assert {
        batch.target.name for batch in fleet.sink.batches if not batch.target.name.startswith("coll")
    } == {each.url.partition("//")[2] for each in (fleet.one, fleet.two)}
    assert len(fleet.sink.launches()) == 2


def test_a_discovered_server_that_the_file_names_too_is_watched_once(fleet: Fleet) -> None:
    static = f"[[discover]]\nkind = 'static'\ntargets = ['{fleet.one.url}', 'mine={fleet.two.url}']\n"
    fleet.start(target(fleet.one) + target(fleet.two, name="'yours'") + static)
    fleet.until_scraped(fleet.one)
    name = f"discover_static:{fleet.one.url}"
    wait_until(lambda: any(each.source == name for each in fleet.sink.all(SourceHealth)))
    health = fleet.sink.health(name)
    assert (health.state, health.refused) == (HealthState.PARTIAL, 1)
    assert health.detail.startswith(f"{fleet.two.url} is watched as 'yours' (listed by {fleet.path})")


def test_hangup_reads_the_file_at_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload_job, "POLL_SECONDS", 3600.0)
    runner = fleet.start(target(fleet.one))
    fleet.until_scraped(fleet.one)
    with reloading_on_hangup(runner):
        fleet.write(target(fleet.two))
        os.kill(os.getpid(), signal.SIGHUP)
        fleet.until_scraped(fleet.two)
    assert [each.base_url for each in runner.targets] == [fleet.two.url]


def test_a_store_that_is_down_at_the_farewell_does_not_hurt(fleet: Fleet) -> None:
    fleet.start(target(fleet.one) + target(fleet.two))
    fleet.until_scraped(fleet.one)
    fleet.sink.is_down = True
    fleet.write(target(fleet.two))
    assert fleet.runner is not None
    wait_until(lambda: fleet.runner is not None and len(fleet.runner.targets) == 1)
    fleet.sink.is_down = False
    with contextlib.suppress(AssertionError):
        wait_until(lambda: False, 0.2)
    fleet.until_scraped(fleet.two)


def test_a_server_that_left_while_nobody_watched_is_gone(fleet: Fleet, tmp_path: Path) -> None:
    listing = tmp_path / "targets.json"
    listing.write_text(json.dumps([{"targets": [fleet.two.url]}]))
    discover = f"[[discover]]\nkind = 'file_sd'\nfiles = ['{listing}']\ninterval_seconds = 1\n"
    fleet.start(target(fleet.one) + discover)
    fleet.until_scraped(fleet.one)
    fleet.until_scraped(fleet.two)
    assert fleet.runner is not None
    wait_until(lambda: all(each.url.encode() in fleet.checkpoint() for each in (fleet.one, fleet.two)))
    fleet.runner.stop()
    fleet.start(discover)  # and the discovery is still there
    wait_until(lambda: HealthState.GONE in fleet.sink.states())
    fleet.until_scraped(fleet.two)
    gone = [each.url for each in fleet.sink.all(SourceHealth) if each.state is HealthState.GONE]
    assert gone == [f"{fleet.one.url}/metrics"]
    fleet.runner.stop()
    fleet.start(discover)
    fleet.until_scraped(fleet.two)
    assert fleet.sink.states().count(HealthState.GONE) == 1  # said once
