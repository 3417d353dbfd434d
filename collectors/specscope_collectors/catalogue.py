"""The metric catalogue: every canonical metric that can be stored, with kind, unit and meaning.

Sources translate raw engine names into these (each source has its own table of raw names and conversions per
engine version); the store refuses a metric that is not here; the docs page is generated from here. Adding a
row is all it takes to add a metric to the product.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Kind(StrEnum):
    """How a metric travels and how it may be summarised."""

    INCREMENT = "increment"
    """Growth of a counter: sums over time and over label sets are exact."""
    LEVEL = "level"
    """A gauge: mean, min, max and last over time."""
    DISTRIBUTION = "distribution"
    """A histogram: adds up over time and label sets."""


class Across(StrEnum):
    """How values of several ranks (label sets) of one server combine at one instant."""

    SUM = "sum"
    """Extensive: requests, tokens/s. Mirrors of one rank must be dropped first."""
    MEAN = "mean"
    """Intensive: ratios and lengths."""
    MAX = "max"
    SAME = "same"
    """A configuration value: ranks must agree."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue."""

    name: str
    kind: Kind
    unit: str
    """``tokens``, ``tokens/s``, ``seconds``, ``1`` for ratios in 0…1, ``requests``, ``bytes`` …"""
    meaning: str
    across: Across = Across.SUM
    labels: tuple[str, ...] = ()
    """Labels with a meaning of their own, besides rank and model labels."""


_Row: TypeAlias = tuple[str, str, str] | tuple[str, str, str, Across] | tuple[str, str, str, Across, str]
"""(name, unit, meaning[, across ranks[, labels, comma-separated]])."""


def _rows(kind: Kind, *rows: _Row) -> list[Metric]:
    metrics = []
    for name, unit, meaning, *rest in rows:
        across = rest[0] if rest else Across.SUM
        labels = tuple(rest[1].split(",")) if len(rest) > 1 else ()
        metrics.append(Metric(name, kind, unit, meaning, Across(across), labels))
    return metrics


_INCREMENTS = _rows(
    Kind.INCREMENT,
    (
        "spec.verify_calls",
        "cycles",
        "Verify steps of finished requests (a request's count is added when it finishes).",
    ),
    (
        "spec.cycles",
        "cycles",
        "Cycles as they happen, one per request and step for which drafts were proposed. Label lacks: which "
        "counts of the same cycles are not known.",
        Across.SUM,
        "lacks",
    ),
    (
        "spec.drafts_proposed",
        "drafts",
        "Proposed drafts as they happen; with label position, those of draft position k. The series add up.",
        Across.SUM,
        "position,lacks",
    ),
    (
        "spec.drafts_accepted",
        "drafts",
        "Accepted drafts as they happen, no bonus token; with label position, cycles in which draft k was "
        "accepted, and all before it. The series add up.",
        Across.SUM,
        "position,lacks",
    ),
    (
        "spec.cycles_by_accepted",
        "cycles",
        "Cycles as they happen by accepted drafts d; they add up to the cycles.",
        Across.SUM,
        "accepted",
    ),
    (
        "probe.worker_cycles",
        "cycles",
        "Rows that the worker verified. Above the requests' cycles by health checks and by what overlap "
        "verified for requests that had already finished.",
    ),
    (
        "probe.worker_drafts_proposed",
        "drafts",
        "Proposed drafts by position, of all rows that the worker verified.",
        Across.SUM,
        "position,lacks",
    ),
    (
        "probe.worker_drafts_accepted",
        "drafts",
        "Accepted drafts by position, of all rows that the worker verified.",
        Across.SUM,
        "position,lacks",
    ),
    ("probe.cycles_seen", "cycles", "Cycles that the probe saw, timed or not.", Across.MEAN),
    ("probe.cycles_dropped", "cycles", "Timed cycles given up because the device answered too late."),
    (
        "probe.host_time",
        "seconds",
        "Host time that the probe itself took: on the scheduler's thread (cycle) or on its own (export).",
        Across.MAX,
        "where",
    ),
    ("probe.wall_time", "seconds", "Wall time of all cycles that the probe saw, gaps included.", Across.MEAN),
    (
        "probe.errors",
        "errors",
        "Exceptions inside the probe; each switched one of its parts off.",
        Across.SUM,
        "part",
    ),
    ("probe.refused", "values", "Impossible values that the probe did not take.", Across.SUM, "part"),
    ("states.samples", "forwards", "Forwards of which hidden states were sampled.", Across.SUM, "mode"),
    ("states.rows", "rows", "Rows of hidden states that went into profiles.", Across.SUM, "phase"),
    (
        "states.dropped",
        "forwards",
        "Forwards that were to be sampled and are in no profile: no_limit (too few rows were seen yet to "
        "tell a sink), no_buffer (the device was behind), and others.",
        Across.SUM,
        "reason",
    ),
    ("states.windows", "windows", "Windows of state profiles by what became of them.", Across.SUM, "outcome"),
    (
        "states.pushes",
        "windows",
        "Windows that the probe pushed to a server (stored) or put aside because they are never taken "
        "(refused); failed counts attempts, after which the window waits.",
        Across.SUM,
        "outcome",
    ),
    (
        "states.invariants",
        "findings",
        "What healthy hidden states lack: rows not finite, zero, or equal with different tokens; windows in "
        "which a slot was the embedding (embedding) or prefill and verify captured different layers "
        "(capture_differs); beside it the pairs that were compared.",
        Across.SUM,
        "kind",
    ),
    ("states.device_time", "seconds", "Device time of sampling hidden states.", Across.MAX),
    ("tokens.generated", "tokens", "Output tokens of finished requests, the one from prefill included."),
    ("tokens.emitted", "tokens", "Output tokens as they happen, the one from prefill included."),
    (
        "tokens.prompt",
        "tokens",
        "Prompt tokens of finished requests (vLLM: of those whose prefill ended).",
    ),
    (
        "tokens.cached",
        "tokens",
        "Prompt tokens of finished requests that the prefix cache supplied.",
        Across.SUM,
        "cache_source",
    ),
    (
        "tokens.decoded",
        "tokens",
        "Tokens emitted by decode steps as they happen (accepted drafts and bonus tokens; may include a few "
        "past a request's stop).",
    ),
    ("tokens.prefill_computed", "tokens", "Prompt tokens computed by prefill as it happens."),
    ("tokens.prefill_cached", "tokens", "Prompt tokens taken from the prefix cache as prefill happens."),
    ("requests.finished", "requests", "Requests that finished.", Across.SUM, "finished_reason"),
    ("requests.aborted", "requests", "Requests that were aborted."),
    ("requests.retracted", "requests", "Requests pushed back to the queue because the KV cache was full."),
    (
        "time.forward",
        "seconds",
        "Device time of forward passes by category (device timer).",
        Across.MEAN,
        "category",
    ),
    (
        "time.phase",
        "seconds",
        "Time of timed cycles by phase, measured inside the engine. Draft, verify_prepare, verify, sampling, "
        "draft_extend and other add up to a speculative cycle, where other is what no phase explains; gap is "
        "the time between two cycles. On the device's clock, or on the host's, which overlapping schedulers "
        "leave behind when work is launched.",
        Across.MEAN,
        "phase,batch,num_draft_tokens,overlap,clock",
    ),
    (
        "time.cycle",
        "seconds",
        "Time of timed cycles: speculative, prefill or plain decode. The sum of their phases.",
        Across.MEAN,
        "kind,batch,num_draft_tokens,overlap,clock",
    ),
    (
        "time.cycles_timed",
        "cycles",
        "Cycles whose time was measured: the denominator of their phases. Of kind gap: measured gaps.",
        Across.MEAN,
        "kind,batch,num_draft_tokens,overlap,clock",
    ),
    (
        "time.warm_up",
        "seconds",
        "Time of the first cycles of each kind, batch size and D, which hold compilation and are kept out of "
        "all other times.",
        Across.MEAN,
        "kind,clock",
    ),
    ("time.warm_up_cycles", "cycles", "How many first cycles were kept out.", Across.MEAN, "kind,clock"),
    (
        "time.scheduler_stage",
        "seconds",
        "Scheduler wall time by stage; the stages are mutually exclusive.",
        Across.MEAN,
        "category,forward_overlap",
    ),
    ("time.scheduler_idle", "seconds", "Scheduler wall time with nothing to do.", Across.MEAN),
    ("time.process_cpu", "seconds", "CPU time of engine processes by component.", Across.SUM, "component"),
    (
        "engine.graph_passes",
        "passes",
        "Forward passes by whether a CUDA graph was replayed.",
        Across.SUM,
        "mode",
    ),
)

_LEVELS = _rows(
    Kind.LEVEL,
    (
        "spec.accept_length",
        "tokens/cycle",
        "Accept length τ over the engine's last log window, bonus token included; frozen while the engine "
        "idles.",
        Across.MEAN,
    ),
    (
        "spec.engine_accept_rate",
        "1",
        "Rate as the engine printed it; its definition depends on the engine version (see engine-reported "
        "rate).",
        Across.MEAN,
    ),
    ("spec.num_steps", "drafts", "Draft depth K in force.", Across.SAME),
    ("spec.num_draft_tokens", "tokens", "Verified tokens per request and cycle D in force.", Across.SAME),
    ("spec.cap_length", "tokens", "DSpark: mean cap on verified tokens.", Across.MEAN),
    (
        "spec.block_accept_length",
        "tokens/cycle",
        "DSpark: accept length of the whole block before the cap.",
        Across.MEAN,
    ),
    (
        "spec.lifetime_accept_length",
        "tokens/cycle",
        "Accept length over all completed log windows since start or cache flush.",
        Across.MEAN,
    ),
    (
        "spec.lifetime_draft_acceptance",
        "1",
        "Share of the proposed drafts that verification accepted since start, each judged by itself, "
        "whatever became of those before it (vLLM's V0 engine).",
        Across.MEAN,
    ),
    (
        "spec.lifetime_efficiency",
        "1",
        "Emitted tokens since start, as a share of what a perfect draft would have given (vLLM's V0 engine).",
        Across.MEAN,
    ),
    ("probe.part", "flag", "1 for the state in which a part of the probe is.", Across.MAX, "part,state"),
    (
        "probe.info",
        "flag",
        "1, with what probe it is, in which engine, on which clock.",
        Across.MAX,
        "version,engine_version,worker,overlap,clock",
    ),
    ("probe.time_every", "cycles", "Every how manieth cycle is timed.", Across.MAX),
    (
        "states.check_ln_norm",
        "nats",
        "Mean ln‖h‖ of a sample that all ranks of a group take: equal on all of them, or the states are "
        "partial sums. To be compared where states.check_sample is equal.",
        Across.MEAN,
        "slot",
    ),
    ("states.push_waiting", "windows", "Windows that wait in the spool to be pushed.", Across.SUM),
    ("states.check_sample", "samples", "Number of the sample that states.check_ln_norm is of.", Across.MAX),
    ("throughput.generated", "tokens/s", "Generated tokens per second over the engine's last log window."),
    ("requests.running", "requests", "Requests being decoded."),
    ("requests.queued", "requests", "Requests waiting."),
    ("kv.used_tokens", "tokens", "Tokens held in the KV cache."),
    ("kv.max_tokens", "tokens", "Capacity of the KV cache."),
    ("kv.usage", "1", "Share of the KV cache in use.", Across.MAX),
    ("cache.hit_rate", "1", "Prefix cache hit rate of the last prefill batch.", Across.MEAN),
    (
        "engine.forward_occupancy",
        "1",
        "Share of a window in which the device was busy with forward passes (device timer).",
        Across.MEAN,
    ),
    ("engine.sum_sequence_lengths", "tokens", "Sum of the sequence lengths being decoded."),
    ("engine.max_running_requests", "requests", "Limit on requests decoded together."),
    ("memory.weights", "GB", "Device memory of the weights, per rank.", Across.MAX),
    ("memory.kv_cache", "GB", "Device memory of the KV cache, per rank.", Across.MAX),
    ("memory.graphs", "GB", "Device memory of CUDA graphs, all phases together, per rank.", Across.MAX),
    (
        "scrape.up",
        "1",
        "1 when the source was read and understood, 0 when the attempt failed.",
        Across.MEAN,
        "source",
    ),
    ("scrape.duration", "seconds", "How long an attempt to read the source took.", Across.MAX, "source"),
    ("scrape.body", "bytes", "Size of the answer.", Across.MAX, "source"),
    ("scrape.series", "series", "Series read from the answer.", Across.MAX, "source"),
    ("scrape.refused", "values", "Values refused in the answer.", Across.MAX, "source"),
)

_DISTRIBUTIONS = _rows(
    Kind.DISTRIBUTION,
    ("latency.time_to_first_token", "seconds", "Time to the first token, at the server."),
    ("latency.inter_token", "seconds", "Time between tokens, spread evenly over the tokens of one chunk."),
    ("latency.time_per_output_token", "seconds", "Decode time per output token of a request."),
    ("latency.end_to_end", "seconds", "Time from arrival to the last token."),
    ("latency.queue", "seconds", "Time spent queueing."),
)

CATALOGUE: dict[str, Metric] = {row.name: row for row in (*_INCREMENTS, *_LEVELS, *_DISTRIBUTIONS)}
"""Canonical name → row."""
