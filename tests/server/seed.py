"""Write what collectors would send: real batches through the real writer, at scrapes five seconds apart."""

from __future__ import annotations

from typing import Any

from specscope_collectors.observations import (
    Batch,
    Distribution,
    HealthState,
    Increment,
    Launch,
    Level,
    Observation,
    Parallelism,
    RequestRecord,
    SourceHealth,
    SpeculativeConfig,
    Target,
)
from specscope_server.store.ingest import IngestWriter

T0 = 1_772_366_400_000
"""2026-03-01T12:00:00Z, when the tests' data begins."""
NOW = T0 + 3_600_000
"""13:00, the time of the tests' clock."""
SCRAPE_MS = 5_000
SERVER = "gpu1:30000"
TOKENIZER = {"model_name": "llama"}
COUNTERS = {"calls": "spec.verify_calls", "tokens": "tokens.generated", "finished": "requests.finished"}
GAUGES = {
    "tau": "spec.accept_length", "rate": "spec.engine_accept_rate", "running": "requests.running",
    "queued": "requests.queued", "depth": "spec.num_steps", "width": "spec.num_draft_tokens",
    "throughput": "throughput.generated",
}  # fmt: skip


def rank_labels(**ranks: int) -> dict[str, str]:
    """Return a scheduler's labels; ``tp``, ``pp`` and ``dp`` number its ranks."""
    named = {"tp": 0, "pp": 0, **ranks}
    return {"model_name": "llama", **{f"{name}_rank": str(number) for name, number in named.items()}}


def level(metric: str, value: float, time_ms: int, **ranks: int) -> Level:
    """Return a gauge of one scheduler."""
    return Level(metric=metric, labels=rank_labels(**ranks), time_ms=time_ms, value=value)


def growth(metric: str, value: float, time_ms: int, labels: dict[str, str] | None = None) -> Increment:
    """Return the growth of a counter over one scrape interval."""
    return Increment(
        metric=metric, labels=labels or TOKENIZER, time_ms=time_ms, span_ms=SCRAPE_MS, value=value
    )


def request(number: int, time_ms: int, histogram: tuple[int, ...], proposed: int = 3) -> RequestRecord:
    """Return a finished request with h accepted drafts per cycle; ``proposed`` drafts a cycle."""
    cycles, accepted = sum(histogram), sum(d * count for d, count in enumerate(histogram))
    return RequestRecord(
        request_id=f"r{number}", time_ms=time_ms, completion_tokens=accepted + cycles + 1,
        verify_calls=cycles, accepted_drafts=accepted, proposed_drafts=cycles * proposed,
        accepted_histogram=histogram,
    )  # fmt: skip


def latency(metric: str, time_ms: int, buckets: tuple[float, ...], bounds: tuple[float, ...]) -> Distribution:
    """Return the growth of a histogram; its sum takes every value at its bucket's upper bound."""
    upper = (*bounds, bounds[-1])
    total = sum(count * bound for count, bound in zip(buckets, upper, strict=True))
    return Distribution(
        metric=metric, labels=TOKENIZER, time_ms=time_ms, span_ms=SCRAPE_MS, bounds=bounds, buckets=buckets,
        count=sum(buckets), sum=total,
    )  # fmt: skip


class Feed:
    """One collector that watches one server."""

    def __init__(self, writer: IngestWriter, server: str = SERVER) -> None:
        self.writer = writer
        self.target = Target(name=server, base_url=f"http://{server}")
        self.sequence = 0
        self.launch_key: str | None = None

    def send(self, *observations: Observation) -> None:
        """Apply one batch."""
        self.sequence += 1
        self.writer.apply(
            Batch(
                collector_id=f"c-{self.target.name}", sequence=self.sequence, target=self.target,
                launch_key=self.launch_key, observations=observations,
            )
        )  # fmt: skip

    def launch(self, key: str = "a1", time_ms: int = T0, **fields: Any) -> None:
        """Begin a launch: by default SGLang 0.5.15, EAGLE-3 with K = 3 and D = 4."""
        speculative = {
            "algorithm": "EAGLE3", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4,
            "draft_model": "draft", **fields.pop("speculative", {}),
        }  # fmt: skip
        values: dict[str, Any] = {
            "engine": "sglang", "engine_version": "0.5.15", "version_source": "server_info", "model": "llama",
            "parallelism": Parallelism(tp_size=1, dp_size=1, pp_size=1), **fields,
        }  # fmt: skip
        self.launch_key = key
        self.send(Launch(key=key, time_ms=time_ms, speculative=SpeculativeConfig(**speculative), **values))

    def scrapes(self, count: int, start_ms: int = T0, **values: float) -> None:
        """Send ``count`` scrapes with the same values: gauges of rank 0, growth of counters."""
        batch: list[Observation] = []
        for index in range(1, count + 1):
            time_ms = start_ms + index * SCRAPE_MS
            for name, value in values.items():
                if name in COUNTERS:
                    batch.append(growth(COUNTERS[name], value, time_ms))
                elif name == "decoded":
                    batch.append(growth("tokens.decoded", value, time_ms, rank_labels()))
                else:
                    batch.append(level(GAUGES[name], value, time_ms))
        self.send(*batch)

    def health(self, time_ms: int, state: HealthState = HealthState.OK, **fields: Any) -> None:
        """Send the outcome of a scrape."""
        source = fields.pop("source", "sglang_metrics")
        url = f"{self.target.base_url}/metrics"
        self.send(
            SourceHealth(
                source=source, time_ms=time_ms, state=state, url=url, duration_seconds=0.01, **fields
            )
        )
