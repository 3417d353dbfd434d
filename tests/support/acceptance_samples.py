"""Hand-made answers of the acceptance endpoints, for tests of what is drawn and worded from them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from specscope_server.acceptance.schemas import (
    AcceptanceSummary,
    AcceptanceTrend,
    ActivityState,
    Check,
    Counts,
    EngineRate,
    Evidence,
    LaunchBrief,
    LaunchMarker,
    Number,
    NumberState,
    RateDefinition,
    TrendPoint,
    Verdict,
)

START_MS = 1_772_366_400_000  # 2026-03-01T12:00:00Z
STEP_SECONDS = 30.0


def iso(time_ms: float) -> str:
    """Return UTC ISO 8601."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def point(index: int, state: ActivityState = ActivityState.ACTIVE, **values: Any) -> TrendPoint:
    """Return the point of one step after the start; without observation everything is None."""
    tau = 2.0 + 0.5 * math.sin(index / 7)
    time = values.pop("time", iso(START_MS + index * STEP_SECONDS * 1000))
    evidence = values.pop("evidence", Evidence.COUNTERS)
    seen: dict[str, Any] = {
        "accept_length": tau, "draft_acceptance": (tau - 1) / 3, "engine_reported_rate": tau / 4,
        "engine_rate_floor": 0.25, "rate_formula": "τ/D", "rate_engine_version": "0.5.8",
        "num_steps": 3, "num_draft_tokens": 4, "verify_calls": 300, "generated_tokens": 300 * tau,
        "generated_tokens_per_second": 10 * tau, "requests_running": 3 + index % 3, "requests_queued": 0,
    }  # fmt: skip
    if state is ActivityState.GAP:
        seen = {name: "" if name.startswith("rate_") else None for name in seen}
    if state is ActivityState.IDLE:
        seen.update(generated_tokens_per_second=0.0, requests_running=0)
    return TrendPoint(time=time, state=state, evidence=evidence, **{**seen, **values})


def rate_definition(formula: str = "τ/D", version: str = "0.5.8", reason: str = "") -> RateDefinition:
    """Return a definition that holds from the start on."""
    end = iso(START_MS + 3_600_000)
    return RateDefinition.model_validate(
        {
            "formula": formula, "engine_version": version, "reason": reason, "from": iso(START_MS),
            "to": end, "launch_ids": [1],
        }
    )  # fmt: skip


def trend(points: list[TrendPoint] | None = None, **values: Any) -> AcceptanceTrend:
    """Return a trend of 120 steps: active, a gap, active, idle, active, with one launch inside."""
    if points is None:
        states = [ActivityState.ACTIVE] * 40 + [ActivityState.GAP] * 10 + [ActivityState.ACTIVE] * 20
        states += [ActivityState.IDLE] * 20 + [ActivityState.ACTIVE] * 30
        points = [point(index, state) for index, state in enumerate(states)]
    marker = LaunchMarker(
        time=iso(START_MS + 1_500_000), launch_id=2, label="K = 3, D = 4", reason="restarted"
    )
    content = {
        "server": "gpu1:30000", "from": iso(START_MS),
        "to": iso(START_MS + len(points) * STEP_SECONDS * 1000),
        "step_seconds": STEP_SECONDS, "is_demo": False, "engine_version": "0.5.8", "rate_formula": "τ/D",
        "rate_definitions": [rate_definition()], "points": points, "launches": [marker],
    }  # fmt: skip
    return AcceptanceTrend(**{**content, **values})


def number(value: float | None = 2.0, unit: str = "tokens/cycle", **values: Any) -> Number:
    """Return a number with everything filled in."""
    content = {
        "value": value, "unit": unit, "state": NumberState.OK, "definition": "1 + mean accepted drafts",
        "source": "sglang:spec_accept_length, SGLang 0.5.8", "n": 1234, "n_unit": "cycles", "low": None,
        "high": None,
        "as_of": iso(START_MS), "age_seconds": 4.2,
    }  # fmt: skip
    return Number(**{**content, **values})


def engine_rate(**values: Any) -> EngineRate:
    """Return an engine rate under the old definition."""
    content = {
        "number": number(0.5, "1"), "formula": "τ/D", "includes_bonus": True, "floor": 0.25,
        "strict_equivalent": 1 / 3,
    }  # fmt: skip
    return EngineRate(**{**content, **values})


def summary(**values: Any) -> AcceptanceSummary:
    """Return a summary of a healthy server."""
    launch = LaunchBrief(
        id=1, key="abc", first_seen=iso(START_MS), last_seen=iso(START_MS), reason="first seen",
        engine="sglang",
        engine_version="0.5.8", algorithm="EAGLE3", num_steps=3, eagle_topk=1, num_draft_tokens=4,
        model="meta-llama/Llama-3.1-8B-Instruct",
        draft_model="jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B", is_demo=False,
    )  # fmt: skip
    content = {
        "server": "gpu1:30000", "launch": launch, "from": iso(START_MS), "to": iso(START_MS + 3_600_000),
        "is_demo": False,
        "evidence": Evidence.COUNTERS, "evidence_note": "counters of finished requests",
        "accept_length": number(low=1.94, high=2.07, interval_method="block bootstrap over scrapes"),
        "draft_acceptance": number(1 / 3, "1"), "engine_reported_rate": engine_rate(),
        "num_steps": number(3, "drafts"), "num_draft_tokens": number(4, "tokens"),
        "verify_calls_per_second": number(41.5, "1/s"), "generated_tokens_per_second": number(83.0,
        "tokens/s"),
        "requests_running": number(3, "requests"), "requests_queued": number(0, "requests"),
        "counts": Counts(
            accepted_drafts=1200, accepted_drafts_kind="derived", proposed_drafts=3600, verify_calls=1200,
            generated_tokens=2410, finished_requests=10, decoded_tokens=None,
            explanation="Tokens past a stop are not emitted.",
        ),
        "checks": [Check(name="every rank reports", passed=True, message="1 of 1")],
        "verdict": Verdict(state="ok", headline="Speculation works", reasons=["2.00 tokens per cycle"]),
    }  # fmt: skip
    return AcceptanceSummary(**{**content, **values})
