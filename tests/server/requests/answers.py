"""Answers of an engine, as a client would pass them on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.server.client import Web
from tests.server.seed import SERVER, T0

FIXTURES = Path(__file__).resolve().parents[2] / "collectors" / "requests" / "fixtures"


def answer(name: str = "a", time_ms: int = T0 + 60_000, **changes: Any) -> dict[str, Any]:
    """Return an answer worked by hand: 13 cycles, 18 of 39 drafts, h = [6, 0, 3, 4], τ = 2.3846."""
    meta = {
        "id": name,
        "finish_reason": {"type": "length", "length": 32},
        "completion_tokens": 32,
        "request_finished_ts": time_ms / 1_000,
        "spec_verify_ct": 13,
        "spec_num_correct_drafts": 18,
        "spec_num_proposed_drafts": 39,
        "spec_correct_drafts_histogram": [6, 0, 3, 4],
        **changes,
    }
    return {"text": "never kept", "meta_info": meta}


def captured(time_ms: int) -> list[dict[str, Any]]:
    """Return 20 real answers of SGLang 0.5.23, moved to this time."""
    text = (FIXTURES / "generate-eagle3-0.5.23.ndjson").read_text("utf-8")
    answers = [json.loads(line) for line in text.splitlines()]
    for each in answers:
        each["meta_info"]["request_finished_ts"] = time_ms / 1_000
    return answers


def post(web: Web, body: Any, status: int = 200, server: str = SERVER, **options: Any) -> dict[str, Any]:
    """Send JSON and return the answer."""
    params = {"server": server, **options.pop("params", {})}
    response = web.request("POST", "/api/v1/requests", params=params, json=body, **options)
    assert response.status_code == status, response.text
    document: dict[str, Any] = response.json()
    return document
