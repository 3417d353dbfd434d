"""Read logs given as text, and lines as the versions of SGLang write them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specscope_collectors.observations import Event, Launch, Level, Observation
from specscope_collectors.sources.sglang_log import LogOptions, LogReader, Summary, Unpacked

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass
class Read:
    """What a log gave."""

    summary: Summary
    observations: list[Observation] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @property
    def levels(self) -> list[Level]:
        """Return the levels in the order given."""
        return [record for record in self.observations if isinstance(record, Level)]

    @property
    def launches(self) -> list[Launch]:
        """Return the launches."""
        return [record for record in self.observations if isinstance(record, Launch)]

    def events(self, kind: str) -> list[Event]:
        """Return the events of a kind."""
        return [record for record in self.observations if isinstance(record, Event) and record.kind == kind]

    def values(self, metric: str, **labels: str) -> list[float]:
        """Return the values of a metric over all series that have these labels."""
        return [
            level.value
            for level in self.levels
            if level.metric == metric and labels.items() <= level.labels.items()
        ]


def read(log: str | bytes, done_to: int = 0, together_from_bytes: int | None = None, **options: Any) -> Read:
    """Read a whole log."""
    data = log.encode(errors="surrogatepass") if isinstance(log, str) else log
    told = {} if together_from_bytes is None else {"together_from_bytes": together_from_bytes}
    reader = LogReader(LogOptions(server="gpu1", fingerprint="f", **options), **told)
    found = Read(reader.summary)
    for portion in reader.read(Unpacked(io.BytesIO(data)), done_to=done_to):
        found.ends.append(portion.end)
        if portion.end > done_to:
            found.observations.extend(portion.observations)
    return found


def captured(name: str) -> Read:
    """Read a fixture."""
    return read((FIXTURES / name).read_bytes())


def ms(text: str) -> int:
    """Return the epoch milliseconds of a time in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


STAMP = "[2026-11-29 20:50:45 TP0]"
BODY = (
    "Decode batch, #running-req: 8, #token: 18432, token usage: 0.31, accept len: 3.33, accept rate: 0.78, "
    "cuda graph: True, gen throughput (token/s): 1085.39, #queue-req: 2"
)
LINE = f"{STAMP} {BODY}"
EXPECTED = {
    "requests.running": 8.0, "kv.used_tokens": 18432.0, "kv.usage": 0.31, "spec.accept_length": 3.33,
    "spec.engine_accept_rate": 0.78, "throughput.generated": 1085.39, "requests.queued": 2.0,
}  # fmt: skip


def by_metric(found: Read) -> dict[str, float]:
    """Return metric → value of a log with one line."""
    values = {level.metric: level.value for level in found.levels}
    assert len(values) == len(found.levels)
    return values
