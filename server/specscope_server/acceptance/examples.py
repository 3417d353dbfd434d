"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any


def _number(value: float | None, unit: str, definition: str, source: str, **more: Any) -> dict[str, Any]:
    return {
        "value": value,
        "unit": unit,
        "state": "ok",
        "definition": definition,
        "source": f"{source}; SGLang 0.5.15",
        "n": None,
        "n_unit": "",
        "low": None,
        "high": None,
        "interval_method": "",
        "as_of": "2026-03-01T12:00:00.000Z",
        "age_seconds": 1.2,
        "note": "",
        **more,
    }


SUMMARY: dict[str, Any] = {
    "server": "gpu1:30000",
    "launch": {
        "id": 7,
        "key": "9f2c41d07b53e6aa",
        "first_seen": "2026-03-01T09:12:04.120Z",
        "last_seen": "2026-03-01T12:00:00.000Z",
        "reason": "configuration changed",
        "engine": "sglang",
        "engine_version": "0.5.15",
        "version_source": "server_info",
        "algorithm": "EAGLE3",
        "num_steps": 3,
        "eagle_topk": 1,
        "num_draft_tokens": 4,
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "draft_model": "drafts/eagle3",
        "is_demo": False,
    },
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T12:00:00.000Z",
    "is_demo": False,
    "evidence": "counters",
    "evidence_note": "Growth of tokens, requests and verify calls over finished requests.",
    "accept_length": _number(
        2.41,
        "tokens/cycle",
        "τ = (Δ tokens − Δ requests) / Δ verify calls",
        "sglang:spec_verify_calls_total",
        n=120000,
        n_unit="cycles",
        low=2.38,
        high=2.44,
        interval_method="block bootstrap over scrapes",
    ),
    "draft_acceptance": _number(
        0.47, "1", "Σ accepted / Σ proposed drafts", "sglang:spec_verify_calls_total"
    ),
    "engine_reported_rate": {
        "number": _number(0.47, "1", "rate as the engine printed it", "sglang:spec_accept_rate"),
        "formula": "(τ−1)/(D−1)",
        "includes_bonus": False,
        "floor": None,
        "strict_equivalent": 0.47,
    },
    "num_steps": _number(3, "drafts", "K", "sglang:spec_num_steps"),
    "num_draft_tokens": _number(4, "tokens", "D", "sglang:spec_num_draft_tokens"),
    "verify_calls_per_second": _number(
        39.0, "cycles/s", "Δ verify calls / time", "sglang:spec_verify_calls_total"
    ),
    "generated_tokens_per_second": _number(
        94.0, "tokens/s", "Δ decoded tokens / time", "sglang:realtime_tokens_total"
    ),
    "requests_running": _number(1, "requests", "requests being decoded", "sglang:num_running_reqs"),
    "requests_queued": _number(0, "requests", "requests waiting", "sglang:num_queue_reqs"),
    "counts": {
        "accepted_drafts": 169200,
        "accepted_drafts_kind": "derived",
        "proposed_drafts": 360000,
        "verify_calls": 120000,
        "generated_tokens": 289900,
        "finished_requests": 700,
        "decoded_tokens": 290500,
        "explanation": "Accepted drafts are derived: tokens − requests − verify calls.",
    },
    "checks": [{"name": "τ ≥ 1", "passed": True, "message": "τ = 2.410"}],
    "verdict": {
        "state": "ok",
        "headline": "Speculation works",
        "reasons": [
            "Whether it pays is not known: there is no baseline (the same load without speculation)."
        ],
    },
}
TREND: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T12:00:00.000Z",
    "step_seconds": 60.0,
    "is_demo": False,
    "engine_version": "0.5.15",
    "rate_formula": "(τ−1)/(D−1)",
    "rate_definitions": [
        {
            "formula": "(τ−1)/(D−1)",
            "engine": "SGLang",
            "engine_version": "0.5.15",
            "reason": "SGLang 0.5.15 prints (τ−1)/(D−1), and its own numbers agree",
            "from": "2026-03-01T11:00:00.000Z",
            "to": "2026-03-01T12:00:00.000Z",
            "launch_ids": [6, 7],
        }
    ],
    "points": [
        {
            "time": "2026-03-01T11:00:00.000Z",
            "state": "active",
            "evidence": "counters",
            "accept_length": 2.41,
            "draft_acceptance": 0.47,
            "engine_reported_rate": 0.47,
            "engine_rate_floor": None,
            "rate_formula": "(τ−1)/(D−1)",
            "rate_engine_version": "0.5.15",
            "num_steps": 3,
            "num_draft_tokens": 4,
            "verify_calls": 2340,
            "generated_tokens": 5650,
            "generated_tokens_per_second": 94.0,
            "requests_running": 1,
            "requests_queued": 0,
        }
    ],
    "launches": [
        {
            "time": "2026-03-01T11:12:04.120Z",
            "launch_id": 7,
            "label": "K=3 D=4 · 0.5.15",
            "reason": "restarted",
        }
    ],
}
