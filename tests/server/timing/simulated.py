"""An engine simulated cycle by cycle with known phases, exporting the counters that real sources export."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.server.seed import SCRAPE_MS, T0, TOKENIZER, Feed, growth, level, rank_labels

from specscope_collectors.observations import Observation
from specscope_server.timing.statistics import batch_bucket

PARTS = ("draft", "verify_prepare", "verify", "sampling", "draft_extend", "other")
ENGINE_CATEGORIES = {"draft": "eagle_draft", "verify": "target_verify", "draft_extend": "eagle_draft_extend"}
ALL = frozenset({"probe", "timer", "gauges"})
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Truth:
    """What the engine really does. Times in ms; ``prefill_every`` cycles one prefill."""

    parts: Mapping[str, float] = field(
        default_factory=lambda: {
            "draft": 1.4, "verify_prepare": 0.2, "verify": 30.0, "sampling": 0.5, "draft_extend": 0.6,
            "other": 0.3,
        }
    )  # fmt: skip
    gap: float = 0.8
    batch: int = 3
    width: int = 4
    length: float = 2.5
    prefill: float = 25.0
    prefill_every: int = 40
    idle_share: float = 0.1
    jitter: float = 0.03
    is_plain: bool = False
    clock: str = "device"
    overlap: str = "off"
    per_request: float = 0.0
    """Growth of verify per further request."""

    @property
    def cycle_ms(self) -> float:
        """Return T_c."""
        return sum(self.parts.values()) + self.gap


@dataclass
class Engine:
    """Runs cycles and remembers counters since the last scrape."""

    truth: Truth
    sources: frozenset[str] = ALL
    labels: Mapping[str, str] = field(default_factory=rank_labels)
    seed: int = 1
    grown: defaultdict[Key, float] = field(default_factory=lambda: defaultdict(float))
    clock_ms: float = 0.0
    cycles: int = 0
    tokens: float = 0.0
    busy_ms: float = 0.0
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """What really was spent, in ms, by part: the answer that the product must find."""
    late_ms: float = 0.0
    """This rank enters verify so much later than the others, which wait."""

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def run(self, until_ms: float) -> None:
        """Run cycles up to a moment."""
        while self.clock_ms < until_ms:
            self._cycle()
            if self.cycles % self.truth.prefill_every == 0:
                self._prefill()
            self._idle()

    def _cycle(self) -> None:
        truth = self.truth
        scale = math.exp(self.rng.gauss(0.0, truth.jitter))
        parts = {name: value * scale for name, value in truth.parts.items()}
        if "verify" in parts:
            parts["verify"] += truth.per_request * (truth.batch - 1) - self.late_ms
            parts["verify_prepare"] = parts.get("verify_prepare", 0.0) + self.late_ms
        gap = truth.gap * scale
        kind = "plain" if truth.is_plain else "speculative"
        shape = {
            "batch": batch_bucket(truth.batch),
            "num_draft_tokens": "0" if truth.is_plain else str(truth.width),
            "overlap": truth.overlap, "clock": truth.clock,
        }  # fmt: skip
        for name, value in parts.items():
            self._probe("time.phase", value / 1000, phase=name, **shape)
            self._timer(name, value)
            self.spent[name] += value
        self._probe("time.cycle", sum(parts.values()) / 1000, kind=kind, **shape)
        self._probe("time.cycles_timed", 1, kind=kind, **shape)
        self._probe("time.phase", gap / 1000, phase="gap", **shape)
        self._probe("time.cycles_timed", 1, kind="gap", **shape)
        self._probe("probe.cycles_seen", 1)
        self._probe("probe.wall_time", (sum(parts.values()) + gap) / 1000)
        self._count("timer", "engine.graph_passes", 1, mode="decode_cuda_graph")
        self._count("timer", "time.scheduler_stage", gap / 1000, category="get_next_batch_to_run",
                    forward_overlap="none")  # fmt: skip
        self.spent["gap"] += gap
        self._spend(sum(parts.values()) + gap)
        self.cycles += 1
        self.tokens += truth.batch * truth.length
        self._count("timer", "tokens.decoded", truth.batch * truth.length)

    def _prefill(self) -> None:
        spent = self.truth.prefill
        shape = {
            "batch": "all",
            "num_draft_tokens": "0",
            "overlap": self.truth.overlap,
            "clock": self.truth.clock,
        }
        self._probe("time.phase", spent / 1000, phase="prefill", **shape)
        self._probe("time.cycle", spent / 1000, kind="prefill", **shape)
        self._probe("time.cycles_timed", 1, kind="prefill", **shape)
        self._probe("probe.cycles_seen", 1)
        self._probe("probe.wall_time", spent / 1000)
        self._count("timer", "time.forward", spent / 1000, category="extend")
        self.spent["prefill"] += spent
        self._spend(spent)

    def _idle(self) -> None:
        spent = self.truth.cycle_ms * self.truth.idle_share
        self._count("timer", "time.scheduler_idle", spent / 1000)
        self.spent["idle"] += spent
        self.clock_ms += spent

    def _timer(self, name: str, value: float) -> None:
        category = ENGINE_CATEGORIES.get(name, "decode" if name == "decode" else "")
        if category:
            self._count("timer", "time.forward", value / 1000, category=category)

    def _spend(self, spent_ms: float) -> None:
        self.clock_ms += spent_ms
        self.busy_ms += spent_ms

    def _probe(self, metric: str, value: float, **labels: str) -> None:
        self._count("probe", metric, value, **labels)

    def _count(self, source: str, metric: str, value: float, **labels: str) -> None:
        if source in self.sources:
            self.grown[metric, tuple(sorted({**self.labels, **labels}.items()))] += value

    def scrape(self, time_ms: int) -> list[Observation]:
        """Return what grew since the last scrape, and the gauges."""
        found: list[Observation] = [
            growth(metric, value, time_ms, dict(labels)) for (metric, labels), value in self.grown.items()
        ]
        for key in self.grown:
            self.grown[key] = 0.0
        return found

    def rates(self, time_ms: int, tokens: float, busy_ms: float) -> list[Observation]:
        """Return gauges as the engine writes them: throughput over wall time of its window."""
        gauges = {
            "requests.running": self.truth.batch,
            "throughput.generated": 1000 * tokens / busy_ms,
            "spec.accept_length": self.truth.length,
            "spec.num_draft_tokens": self.truth.width,
        }
        if self.truth.is_plain:
            gauges = {key: gauges[key] for key in ("requests.running", "throughput.generated")}
        return [level(metric, value, time_ms) for metric, value in gauges.items()]


def play(feed: Feed, *engines: Engine, scrapes: int = 40, start_ms: int = T0, first: int = 0) -> None:
    """Run engines side by side and send what each scrape sees; the launch began at ``start_ms``, and
    ``first`` scrapes were sent before.
    """
    for index in range(first + 1, first + scrapes + 1):
        time_ms = start_ms + index * SCRAPE_MS
        batch: list[Observation] = []
        for engine in engines:
            tokens, busy = engine.tokens, engine.busy_ms
            engine.run(index * SCRAPE_MS)
            batch += engine.scrape(time_ms)
            if "gauges" in engine.sources and engine is engines[0] and engine.busy_ms > busy:
                batch += engine.rates(time_ms, engine.tokens - tokens, engine.busy_ms - busy)
        feed.send(*batch)


def play_batches(feed: Feed, one: Engine, batches: tuple[int, ...], start_ms: int = T0) -> None:
    """Run one engine with a load that changes every ten scrapes."""
    for place, batch in enumerate(batches):
        one.truth = replace(one.truth, batch=batch)
        play(feed, one, scrapes=10, start_ms=start_ms, first=10 * place)


def engine(sources: str = "probe timer gauges", **fields: Any) -> Engine:
    """Return an engine with other truths than the default."""
    late_ms, labels, seed = (fields.pop(name, default) for name, default in
                             (("late_ms", 0.0), ("labels", rank_labels()), ("seed", 1)))  # fmt: skip
    return Engine(Truth(**fields), frozenset(sources.split()), labels, seed, late_ms=late_ms)


__all__ = ["PARTS", "TOKENIZER", "Engine", "Truth", "engine", "play", "play_batches"]
