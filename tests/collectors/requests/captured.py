"""Real answers of SGLang 0.5.8 and 0.5.23 on a CPU, as they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
RECEIVED_MS = 1_796_002_000_000
"""A little after the answers were given."""
EXPORT = FIXTURES / "sglang-request-metrics-20261130_01.log"

WORKED: dict[str, Any] = {
    "meta_info": {
        "id": "worked",
        "finish_reason": {"type": "length", "length": 32},
        "prompt_tokens": 9,
        "completion_tokens": 32,
        "spec_verify_ct": 13,
        "spec_num_correct_drafts": 18,
        "spec_num_proposed_drafts": 39,
        "spec_correct_drafts_histogram": [6, 0, 3, 4],
    }
}
"""Worked by hand: 6·0 + 0·1 + 3·2 + 4·3 = 18 of 39 drafts in 13 cycles, τ = 1 + 18/13 = 2.3846."""


def lines(name: str) -> list[Any]:
    """Return the answers of a file of JSON lines."""
    return [json.loads(line) for line in (FIXTURES / name).read_text("utf-8").splitlines()]


def document(name: str) -> Any:
    """Return the answer of a file."""
    return json.loads((FIXTURES / name).read_text("utf-8"))


def chunks(name: str) -> list[Any]:
    """Return the parts of a stream."""
    texts = (FIXTURES / name).read_text("utf-8").splitlines()
    return [json.loads(text[6:]) for text in texts if text.startswith("data: {")]
