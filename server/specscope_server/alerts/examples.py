"""Examples of the answers about alerts."""

from __future__ import annotations

from typing import Any

ITEM: dict[str, Any] = {
    "alert_id": "1f0c6a2b9d3e4f50-19c9d2a1e40",
    "fingerprint": "1f0c6a2b9d3e4f5061728394a5b6c7d8",
    "rule": "dead-draft",
    "title": "The draft is dead",
    "severity": "critical",
    "state": "firing",
    "labels": {"category": "acceptance", "model": "qwen3-8b", "rule": "dead-draft", "server": "gpu1:30000",
               "severity": "critical"},
    "since": "2026-03-01T12:00:00.000Z",
    "fired": "2026-03-01T12:00:00.000Z",
    "resolved": None,
    "reason": "1.08 (1.05 to 1.11) tokens per cycle, below 1.20",
    "cause": "",
    "value": 1.08,
    "lower": 1.05,
    "upper": 1.11,
    "n": 48210.0,
    "unit": "tokens per cycle",
    "n_unit": "cycles",
    "acked_by": "ana",
    "acked": "2026-03-01T12:04:10.000Z",
    "muted_by": "",
    "page": "/acceptance?server=gpu1&from=2026-03-01T11%3A00%3A00.000Z&to=2026-03-01T12%3A15%3A00.000Z",
    "is_demo": False,
}  # fmt: skip
LIST: dict[str, Any] = {"alerts": [ITEM], "counts": {"firing": 1, "pending": 2}, "health": "ok"}
TRANSITION: dict[str, Any] = {
    "id": 17,
    "at": "2026-03-01T12:00:00.000Z",
    "alert_id": ITEM["alert_id"],
    "fingerprint": ITEM["fingerprint"],
    "rule": "dead-draft",
    "severity": "critical",
    "labels": {"server": "gpu1:30000"},
    "from_state": "pending",
    "to_state": "firing",
    "reason": ITEM["reason"],
    "notified": "2026-03-01T12:00:30.000Z",
}
HISTORY: dict[str, Any] = {"transitions": [TRANSITION], "next_cursor": None}
HISTORY_CSV = "id,at,rule,from_state,to_state\r\n17,2026-03-01T12:00:00.000Z,dead-draft,pending,firing\r\n"
CARD: dict[str, Any] = {
    "alert_id": ITEM["alert_id"], "fingerprint": ITEM["fingerprint"], "rule": "dead-draft",
    "title": ITEM["title"], "severity": "critical", "status": "firing", "starts_ms": 1772366400000,
    "labels": ITEM["labels"], "reason": ITEM["reason"], "n": 48210,
    "changes": [{"at_ms": 1772366100000, "kind": "launch", "text": "speculative_draft_model_path a → b"}],
}  # fmt: skip
DETAIL: dict[str, Any] = {
    "alert": ITEM,
    "card": CARD,
    "evidence": {"signal": "acceptance.accept_length", "below": 1.2},
    "timeline": [
        {"at": "2026-03-01T11:55:00.000Z", "kind": "state", "text": ITEM["reason"], "status": "pending",
         "delivery_id": None},
        {"at": "2026-03-01T12:00:30.000Z", "kind": "delivery", "status": "sent",
         "text": "oncall: told as firing (1 new), 1 attempts", "delivery_id": 9},
        {"at": "2026-03-01T12:04:10.000Z", "kind": "person", "text": "acknowledged by ana",
         "status": "acknowledged", "delivery_id": None},
    ],
}  # fmt: skip
AUDIT: dict[str, Any] = {
    "entries": [
        {
            "id": 5,
            "at": "2026-03-01T12:04:10.000Z",
            "actor": "ana",
            "action": "alert.ack",
            "target": ITEM["alert_id"],
            "before": {"owner": None},
            "after": {"owner": "ana", "note": ""},
        }
    ],
    "next_cursor": None,
}
