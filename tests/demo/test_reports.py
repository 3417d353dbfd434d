"""What the demo's clients report agrees with what its engine counts, and tells the story of its tenants."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.demo.playing import STARTED_MS, play, player, running, single
from tests.server.client import Web

from specscope_collectors.observations import RequestRecord
from specscope_collectors.sources.requests import to_record
from specscope_server.demo.engine import create_app
from specscope_server.demo.model import DEAD, CycleModel
from specscope_server.demo.player import Player
from specscope_server.demo.reports import Reports
from specscope_server.demo.story import Load
from specscope_server.demo.traffic import BENCHMARK, TENANTS, context_strain, draw


@dataclass
class Received:
    """Reports as Specscope reads them."""

    records: list[RequestRecord] = field(default_factory=list)

    def send(self, answer: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        """Read one report; a contradiction is an error here."""
        self.records.append(to_record(answer, labels=labels, received_ms=0))


def reporting(subject: Player) -> Received:
    """Let the player report from its first launch on."""
    received = Received()
    subject.reports = Reports(received.send, subject.version.name, "seed")
    subject.reports.seen(0)
    return received


@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_reports_add_up_to_the_engines_counters(version: str) -> None:
    subject = single(CycleModel(3), version, load=Load(rate=1.5))
    received = reporting(subject)
    for _ in play(subject, 300, 10_000):
        counted, records = running(subject).telemetry, received.records
        assert len(records) == sum(counted.requests.values())
        assert sum(record.verify_calls or 0 for record in records) == counted.verify_calls
        assert sum(record.completion_tokens or 0 for record in records) == sum(
            counted.generation_tokens.values()
        )
        assert sum(record.accepted_drafts or 0 for record in records) >= counted.accepted_delivered
    assert len(records) > 300
    assert len({record.request_id for record in records}) == len(records)
    assert all(record.proposed_drafts == 3 * (record.verify_calls or 0) for record in records)
    assert {record.accepted_histogram is None for record in records} == {version == "0.5.8"}
    assert all(STARTED_MS < record.time_ms <= STARTED_MS + 300_000 for record in records)


def test_without_speculation_a_report_says_nothing_about_it() -> None:
    subject = single(CycleModel(0))
    received = reporting(subject)
    subject.advance(STARTED_MS + 60_000)
    assert {record.verify_calls for record in received.records} == {None}
    assert {record.labels["tenant"] for record in received.records} == {BENCHMARK}


def test_a_launch_is_reported_of_once_it_was_read() -> None:
    subject = player("0.5.23")
    received = Received()
    subject.reports = Reports(received.send, "0.5.23", "seed")
    app = create_app(subject, lambda: STARTED_MS + 20_000, "127.0.0.1", 1)
    client = Web(app)
    client.get("/metrics")
    assert received.records == []
    client.get("/server_info")
    subject.advance(STARTED_MS + 39_000)
    known = len(received.records)
    assert known > 0
    subject.advance(STARTED_MS + 100_000)
    assert running(subject).launch.index == 1
    assert all(record.time_ms <= STARTED_MS + 40_000 + 28_000 for record in received.records)


def lengths(records: list[RequestRecord]) -> dict[str, float]:
    """Return pooled τ by tenant."""
    cycles, accepted = defaultdict[str, int](int), defaultdict[str, int](int)
    for record in records:
        cycles[record.labels["tenant"]] += record.verify_calls or 0
        accepted[record.labels["tenant"]] += record.accepted_drafts or 0
    return {name: 1 + accepted[name] / cycles[name] for name in cycles}


def test_tenants_differ_but_a_dead_draft_is_dead_for_all() -> None:
    found = {}
    for alphas in (CycleModel(5).alphas, DEAD):
        subject = single(CycleModel(5, alphas), load=Load(rate=1.5))
        received = reporting(subject)
        subject.advance(STARTED_MS + 600_000)
        found[alphas] = lengths(received.records)
    healthy, dead = found.values()
    assert healthy["code"] > healthy["assistant"] + 0.2
    assert healthy["archive"] < healthy["assistant"] - 0.1
    assert all(value == pytest.approx(1.12, abs=0.03) for value in dead.values())


def test_long_prompts_strain_and_short_ones_do_not() -> None:
    assert context_strain(1) == context_strain(2_048) == 1
    assert context_strain(4_096) == pytest.approx(1.3)


def test_shares_and_odd_requests_are_as_told() -> None:
    rng = random.Random(5)
    drawn = [draw(rng) for _ in range(20_000)]
    shares = Counter(each.tenant for each in drawn)
    for tenant in TENANTS:
        assert shares[tenant.name] / len(drawn) == pytest.approx(tenant.share, abs=0.02)
    for strain in (0.01, 12.0):
        assert sum(each.strain == strain for each in drawn) / len(drawn) == pytest.approx(0.01, abs=0.004)
    assert all(1 <= each.prompt_tokens <= 16_001 and 8 <= each.output_tokens <= 508 for each in drawn)
