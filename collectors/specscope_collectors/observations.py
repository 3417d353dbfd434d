"""The contract between collectors and the server: the few record types that travel.

A collector turns whatever an engine says into these records, puts them into a `Batch`, and hands the batch
to a `Sink`. Nothing else crosses the line: a new source or a new store never touches the other side.

Units: times are UTC epoch milliseconds (`time_ms`), lengths of time carry their unit in the name. A record
that describes growth covers the half-open interval ``(time_ms - span_ms, time_ms]``; ``span_ms`` is never 0.

Rules that every producer keeps (the server refuses and counts what breaks them):

* counts and their denominators travel, never a ratio alone (an engine's own ratio is a `Level`);
* what was not seen is not sent: no zero stands for "unknown";
* NaN and infinities are never sent;
* metric names stand in `specscope_collectors.catalogue`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import msgspec

from specscope_collectors.records import Labels as Labels
from specscope_collectors.records import Record as Record
from specscope_collectors.state_records import LnNorms as LnNorms
from specscope_collectors.state_records import StateProfile as StateProfile
from specscope_collectors.trace_records import TraceCollectives as TraceCollectives
from specscope_collectors.trace_records import TraceFile as TraceFile
from specscope_collectors.trace_records import TraceKernel as TraceKernel
from specscope_collectors.trace_records import TracePhase as TracePhase
from specscope_collectors.trace_records import TraceRank as TraceRank
from specscope_collectors.trace_records import TraceSummary as TraceSummary


class Increment(Record, frozen=True, kw_only=True, tag="increment", gc=False):
    """Growth of a counter over ``(time_ms - span_ms, time_ms]``; resets are already handled by the source.

    Sums of increments over any window are exact; a lost scrape only widens one interval.
    """

    metric: str
    labels: Labels
    time_ms: int
    span_ms: int
    value: float


class Level(Record, frozen=True, kw_only=True, tag="level", gc=False):
    """Value of a gauge at ``time_ms``."""

    metric: str
    labels: Labels
    time_ms: int
    value: float


class Distribution(Record, frozen=True, kw_only=True, tag="distribution"):
    """Growth of a histogram over ``(time_ms - span_ms, time_ms]``.

    ``bounds`` are the finite upper bounds, ascending; ``buckets`` are **per-bucket** (not cumulative) counts
    and have one entry more than ``bounds``: the overflow (+Inf) comes last. Equal bounds add up.
    """

    metric: str
    labels: Labels
    time_ms: int
    span_ms: int
    bounds: tuple[float, ...]
    buckets: tuple[float, ...]
    count: float
    sum: float


class Event(Record, frozen=True, kw_only=True, tag="event"):
    """Something that happened once: ``launch``, ``restart``, ``config_change``, ``clock_jump``, …"""

    kind: str
    time_ms: int
    message: str
    detail: dict[str, Any] = {}


class SpeculativeConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resolved speculative arguments of a launch. None = the engine did not say."""

    algorithm: str | None = None
    num_steps: int | None = None
    """K, draft depth."""
    eagle_topk: int | None = None
    num_draft_tokens: int | None = None
    """D, tokens verified per request and cycle, root included (K + 1 for a chain)."""
    draft_model: str | None = None
    adaptive: bool | None = None


class Parallelism(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parallel sizes of a launch. None = the engine did not say."""

    tp_size: int | None = None
    dp_size: int | None = None
    pp_size: int | None = None
    ep_size: int | None = None
    nnodes: int | None = None
    enable_dp_attention: bool | None = None


START_EVIDENCE = frozenset({"startup_time", "random_seed", "launch_command", "nccl_port"})
"""Settings of SGLang by which two starts of one configuration differ."""


class Launch(Record, frozen=True, kw_only=True, tag="launch"):
    """One start of a server with one resolved configuration.

    ``key`` is a fingerprint (hex) that changes with every process start or configuration change and is stable
    otherwise, so that sending the same launch again changes nothing.
    """

    key: str
    time_ms: int
    """When the collector first saw this launch."""
    engine: str
    """``sglang``, …"""
    engine_version: str | None = None
    version_source: str | None = None
    """``server_info``; ``metric_names``: then ``engine_version`` is the oldest with that metric set; or
    ``log_lines``: then it is a range in words, e.g. ``0.5.3–0.5.14``, and may come later than the launch."""
    reason: str = "first seen"
    """Why this is a launch of its own, in words: ``first seen``, ``restarted``, …"""
    model: str | None = None
    served_model_name: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    speculative: SpeculativeConfig = SpeculativeConfig()
    parallelism: Parallelism = Parallelism()
    environment: dict[str, str] = {}
    """Chosen environment variables (``NCCL_*``, ``SGLANG_*`` …), secrets redacted."""
    config: dict[str, Any] = {}
    """Whole resolved configuration, secrets redacted at the edge."""
    is_demo: bool = False
    """True for data of the demo engine; shown wherever the data is shown."""


class HealthState(StrEnum):
    """State of one source of one target; each has its own words and remedy on the Sources page."""

    OK = "ok"
    PARTIAL = "partial"
    """Answered, but something that we would like to see is missing or was refused."""
    UNREACHABLE = "unreachable"
    """No connection: refused, name unknown, reset, no route."""
    TIMEOUT = "timeout"
    TLS_ERROR = "tls_error"
    UNAUTHORIZED = "unauthorized"
    DISABLED = "disabled"
    """The engine answers, but this endpoint is off (``/metrics`` without ``--enable-metrics`` is 404)."""
    NOT_OFFERED = "not_offered"
    """This engine version has no such endpoint: nothing is wrong and nothing is missing that could be had."""
    HTTP_ERROR = "http_error"
    NOT_THIS_ENGINE = "not_this_engine"
    """Answered with something else (HTML, another product's metrics, JSON of another shape)."""
    INVALID = "invalid"
    """Truncated, garbled or contradictory body."""
    TOO_LARGE = "too_large"
    GONE = "gone"
    """No longer listed where it was found, so nobody asks it any more."""


class SourceHealth(Record, frozen=True, kw_only=True, tag="source_health"):
    """Outcome of one attempt to read one source of a target. Scrape health is data too."""

    source: str
    """Folder name under ``sources/``, e.g. ``sglang_metrics``."""
    time_ms: int
    state: HealthState
    url: str
    duration_seconds: float
    http_status: int | None = None
    body_bytes: int | None = None
    series: int | None = None
    """Series read from this answer (after mapping)."""
    refused: int = 0
    """Values refused in this answer (NaN, negative counters, duplicates, over the series limit …)."""
    detail: str = ""
    """What is wrong, in one sentence, naming the input. Empty when all is well."""
    remedy: str = ""
    """What to do about it: the flag, variable or setting. Empty when there is nothing to do."""
    missing: dict[str, str] = {}
    """What cannot be seen here → how to turn it on."""


class RequestRecord(Record, frozen=True, kw_only=True, tag="request"):
    """One finished request: counts only, never prompt or output text.

    ``accepted_histogram[j]`` = number of verify steps in which exactly j drafts were accepted. The server
    refuses a record that violates Σh = verify_calls or Σ j·h[j] = accepted_drafts.
    """

    request_id: str
    time_ms: int
    """When the request finished."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    verify_calls: int | None = None
    accepted_drafts: int | None = None
    proposed_drafts: int | None = None
    accepted_histogram: tuple[int, ...] | None = None
    e2e_seconds: float | None = None
    labels: Labels = {}


CANARY_ID_PREFIX = "specscope-canary:"
"""Start of every request id of a canary: what is not users' traffic is known by it."""


class CanaryLabel(StrEnum):
    """Labels of a canary's requests."""

    SET = "canary_set"
    """Fingerprint of the prompts and of the length asked for."""
    RUN = "canary_run"
    """When the run began, epoch milliseconds."""
    PROMPT = "canary_prompt"
    OUTPUT = "canary_output"
    """Hash of what was generated."""


Observation: TypeAlias = (
    Increment
    | Level
    | Distribution
    | Event
    | Launch
    | SourceHealth
    | RequestRecord
    | StateProfile
    | TraceSummary
)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The watched server that a batch speaks of."""

    name: str
    """Stable, unique name shown to users; by default host:port of the base URL."""
    base_url: str
    """Without credentials, query or trailing slash."""


class Batch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one collector learnt about one target, applied by the server as a whole or not at all.

    ``sequence`` increases strictly per ``collector_id``; a batch whose sequence was applied before changes
    nothing. Measurements belong to ``launch_key``; None = no launch is known yet (only health may then be
    sent). ``checkpoint`` is the collector's own state after this batch (opaque to the server, kept in the
    same transaction), so that a collector that is killed resumes without losing or repeating growth.
    """

    collector_id: str
    sequence: int
    target: Target
    launch_key: str | None = None
    observations: tuple[Observation, ...] = ()
    checkpoint: bytes | None = None


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """Where a collector left off, as far as the server has applied its batches."""

    sequence: int = 0
    checkpoint: bytes | None = None
    launch_key: str | None = None


class Sink(Protocol):
    """Where batches go: the store in the same process, or a spool that is pushed to a server."""

    def resume(self, collector_id: str) -> Resume:
        """Return the last applied sequence and checkpoint; ``Resume()`` for a collector never seen."""
        ...

    def apply(self, batch: Batch) -> bool:
        """Store the batch durably; return only when it cannot be lost. Raise when it was not stored.

        False when its sequence was applied before: then nothing of it was stored. A collector that never
        sends a batch twice learns from it that another process collects under the same id.
        """
        ...
