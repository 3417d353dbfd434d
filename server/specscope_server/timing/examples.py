"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

from specscope_server.timing.summary_example import LAUNCH, SUMMARY

__all__ = ["COMPARISON", "RANKS", "SUMMARY", "SURFACE", "TREND"]

TREND: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T12:55:00.000Z",
    "to": "2026-03-01T13:00:00.000Z",
    "step_seconds": 10.0,
    "is_demo": False,
    "evidence": "probe",
    "evidence_note": "Phases of timed cycles, added up inside the engine; warm-up is kept apart.",
    "phases": [
        "draft",
        "verify_prepare",
        "verify",
        "sampling",
        "draft_extend",
        "host",
        "unattributed",
        "prefill",
        "idle",
    ],
    "points": [
        {
            "time": "2026-03-01T12:55:00.000Z",
            "state": "active",
            "phase": "draft",
            "seconds": 0.18615,
            "share_of_wall": 0.037229,
            "ms_per_cycle": 1.3996,
            "cycles": 133.0,
        }
    ],
    "launches": [
        {
            "time": "2026-03-01T12:55:00.000Z",
            "launch_id": 2,
            "label": "K=3 D=4 · 0.5.15",
            "reason": "first seen",
        }
    ],
}
SURFACE: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T12:55:00.000Z",
    "to": "2026-03-01T13:00:00.000Z",
    "is_demo": False,
    "evidence": "probe",
    "evidence_note": "Phases of timed cycles, added up inside the engine; warm-up is kept apart.",
    "baseline": {
        "launch": {
            "id": 1,
            "words": "SGLang 0.5.15 · no speculation",
            "first_seen": "2026-03-01T12:40:00.000Z",
            "last_seen": "2026-03-01T12:43:20.000Z",
            "num_steps": None,
            "num_draft_tokens": None,
            "is_plain": True,
        },
        "level": "probe",
        "age_seconds": 1000.0,
        "cycles": 15715.0,
        "note": "launch 1 without speculation",
    },
    "experts_note": "unknown: how many experts the model has, and how many a token uses, is not told by "
    "the engine. Give both (experts, experts_per_token) to see what their traffic "
    "predicts",
    "cells": [
        {
            "launch_id": 2,
            "num_draft_tokens": "4",
            "batch": "3-4",
            "cycles": 7671.0,
            "is_few": False,
            "verify_ms": 30.006,
            "verify_low": 29.989,
            "verify_high": 30.026,
            "cycle_ms": 33.807,
            "plain_ms": 11.004,
            "verify_ratio": 2.727,
            "expected_experts_ratio": None,
        }
    ],
}
RANKS: dict[str, Any] = {
    "server": "gpu1:30000",
    "launch": LAUNCH,
    "from": "2026-03-01T12:55:00.000Z",
    "to": "2026-03-01T13:00:00.000Z",
    "is_demo": False,
    "evidence": "probe",
    "evidence_note": "The probe on each rank; cycles as that rank counted them.",
    "skew": None,
    "straggler": None,
    "verdict": "One scheduler reports times; skew needs two",
    "checks": [
        {
            "name": "ranks of a group run the same cycles",
            "passed": None,
            "message": "no group has two ranks that report",
        },
        {"name": "every rank reports times", "passed": True, "message": "1 of 1 ranks"},
    ],
    "ranks": [
        {
            "rank": "dp 0, pp 0, tp 0",
            "dp_rank": 0,
            "pp_rank": 0,
            "tp_rank": 0,
            "cycles": 7671.0,
            "cycle_ms": 33.007,
            "verify_ms": 30.006,
            "other_ms": 3.0006,
            "verify_against_median": None,
        }
    ],
}
COMPARISON: dict[str, Any] = {
    "server": "gpu1:30000",
    "is_demo": False,
    "state": "warn",
    "verdict": "Whole cycle +207.2 % (+207.0 % … +207.5 %)",
    "evidence": "probe",
    "interval_method": "block bootstrap over scrapes of each side, joined on the scale of logarithms",
    "a": {
        "words": "launch 1",
        "launch": {
            "id": 1,
            "words": "SGLang 0.5.15 · no speculation",
            "first_seen": "2026-03-01T12:40:00.000Z",
            "last_seen": "2026-03-01T12:43:20.000Z",
            "num_steps": None,
            "num_draft_tokens": None,
            "is_plain": True,
        },
        "evidence": "probe",
        "cycles": 15715.0,
        "accept_length": 1.0,
        "requests_per_cycle": 3.0,
        "tokens_per_second": 258.02,
    },
    "b": {
        "words": "launch 2",
        "launch": {
            "id": 2,
            "words": "SGLang 0.5.15 · EAGLE3 K=3 D=4",
            "first_seen": "2026-03-01T12:55:00.000Z",
            "last_seen": "2026-03-01T12:59:50.000Z",
            "num_steps": 3,
            "num_draft_tokens": 4,
            "is_plain": False,
        },
        "evidence": "probe",
        "cycles": 7671.0,
        "accept_length": 2.5,
        "requests_per_cycle": 3.0,
        "tokens_per_second": 217.84,
    },
    "phases": [
        {
            "phase": "cycle",
            "title": "whole cycle",
            "a_ms": 11.004,
            "a_low": 10.998,
            "a_high": 11.009,
            "b_ms": 33.807,
            "b_low": 33.787,
            "b_high": 33.83,
            "difference_ms": 22.804,
            "change": 2.0724,
            "low": 2.07,
            "high": 2.075,
            "is_certain": True,
        },
        {
            "phase": "draft",
            "title": "draft",
            "a_ms": None,
            "a_low": None,
            "a_high": None,
            "b_ms": 1.4003,
            "b_low": 1.3995,
            "b_high": 1.4012,
            "difference_ms": None,
            "change": None,
            "low": None,
            "high": None,
            "is_certain": False,
        },
        {
            "phase": "verify_prepare",
            "title": "verify preparation",
            "a_ms": None,
            "a_low": None,
            "a_high": None,
            "b_ms": 0.20004,
            "b_low": 0.19992,
            "b_high": 0.20017,
            "difference_ms": None,
            "change": None,
            "low": None,
            "high": None,
            "is_certain": False,
        },
    ],
    "same_batch": [],
    "note": "no batch size was met by both sides often enough",
}
