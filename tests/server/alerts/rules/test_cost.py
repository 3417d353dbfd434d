"""What a pass over the shipped rules asks of the database: so much for each server, whatever it reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session
from tests.server.alerts.rules.support import state_of
from tests.server.seed import SCRAPE_MS, T0, Feed, growth, level, rank_labels

from specscope_collectors.observations import Level, Observation
from specscope_server.alerts.rules.evaluate import evaluate
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.schema import Origin, StoredRule
from specscope_server.store.ingest import IngestWriter

SCRAPES = 240
COUNTED = {"spec.verify_calls": 100.0, "tokens.generated": 230.0, "requests.finished": 2.0}
OF_ALL, OF_EACH = 23, 4
"""Most statements of a pass, and more of them for each server."""


def read(time_ms: int, ranks: int) -> Iterator[Observation]:
    """Yield what one read of a server's metrics tells."""
    yield Level(metric="scrape.up", labels={"source": "sglang_metrics"}, time_ms=time_ms, value=1.0)
    for name, value in COUNTED.items():
        yield growth(name, value, time_ms)
    for rank in range(ranks):
        yield level("requests.running", 2.0, time_ms, tp=rank)
        yield level("spec.accept_length", 2.3, time_ms, tp=rank)
        yield growth("time.forward", 4.5, time_ms, rank_labels(tp=rank) | {"stage": "target_verify"})


class Fleet:
    """Servers with counters, gauges, the device's timer and the probe's times."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.writer = IngestWriter(engine, lambda: T0)
        self.feeds: list[Feed] = []
        self.scrapes = 0

    def add(self, ranks: int = 1) -> None:
        """Add a server with so many tensor-parallel ranks, read since the beginning."""
        feed = Feed(self.writer, f"gpu{len(self.feeds)}:30000")
        feed.launch()
        self.feeds.append(feed)
        self._send(feed, ranks, range(1, SCRAPES + 1))
        self.scrapes = SCRAPES

    def go_on(self, ranks: int = 1) -> None:
        """Read every server three times more."""
        for feed in self.feeds:
            self._send(feed, ranks, range(self.scrapes + 1, self.scrapes + 4))
        self.scrapes += 3

    @staticmethod
    def _send(feed: Feed, ranks: int, scrapes: range) -> None:
        times = [T0 + index * SCRAPE_MS for index in scrapes]
        feed.health(times[-1])
        feed.send(*(one for time_ms in times for one in read(time_ms, ranks)))

    def asked(self, rules: int = 1) -> int:
        """Return the statements of a pass like the one before it, over so many copies of the pack."""
        stored = [
            StoredRule(
                rule=rule.model_copy(update={"name": f"{rule.name}-{copy}"}), version=1, origin=Origin.PACK,
                enabled=True,
            )
            for rule in pack().values() for copy in range(rules)
        ]  # fmt: skip
        found: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            found.append(statement)

        now_ms = T0 + self.scrapes * SCRAPE_MS
        with Session(self.engine) as session:
            evaluate(session, state_of(self.engine, now_ms), stored, now_ms)
        self.go_on()
        event.listen(self.engine, "before_cursor_execute", note)
        now_ms = T0 + self.scrapes * SCRAPE_MS
        with Session(self.engine) as session:
            readings = list(evaluate(session, state_of(self.engine, now_ms), stored, now_ms))
        event.remove(self.engine, "before_cursor_execute", note)
        assert len({reading.rule for reading in readings}) > 6 * rules, "few rules found anything to look at"
        return len(found)


def test_a_pass_asks_so_much_of_each_server_however_many_rules_and_series(sqlite_engine: Engine) -> None:
    fleet = Fleet(sqlite_engine)
    fleet.add()
    one = fleet.asked()
    assert one <= OF_ALL + OF_EACH
    assert fleet.asked(rules=3) == one, "each copy of a rule reads for itself"
    fleet.add(ranks=8)
    two = fleet.asked()
    assert two - one <= OF_EACH, "each series is read for itself"
    fleet.add()
    fleet.add()
    assert fleet.asked() - two <= 2 * OF_EACH
