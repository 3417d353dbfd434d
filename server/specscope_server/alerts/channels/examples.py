"""Answers for the API's documentation."""

from __future__ import annotations

from typing import Any

CHANNEL: dict[str, Any] = {
    "name": "oncall",
    "kind": "webhook",
    "origin": "api",
    "enabled": True,
    "disabled_reason": "",
    "settings": {"url": "https://hooks.example.org/specscope", "secret": "(secret)", "per_minute": 60},
    "breaker": {"state": "closed", "failures": 0, "until": None, "failing_since": None},
    "waiting": 0,
    "last_sent": "2026-03-01T12:00:01.000Z",
    "last_failure": None,
    "last_failure_reason": "",
    "updated": "2026-02-27T09:00:00.000Z",
}
CHANNELS = {"channels": [CHANNEL]}
KINDS = {
    "kinds": [
        {
            "name": "webhook", "title": "Webhook", "meaning": "POSTs the incident card as JSON, signed.",
            "carries_picture": False,
            "fields": [
                {"name": "url", "is_secret": False, "is_required": True, "default": None, "type": "text",
                 "meaning": "Where to POST.", "one_of": None},
            ],
        }
    ]
}  # fmt: skip
TRIED = {"delivery_id": 17, "outcome": "delivered", "reason": "", "status_code": 204, "latency_ms": 84}
DELIVERY: dict[str, Any] = {
    "id": 16,
    "webhook_id": "msg_5c1f0f6e0f0b4a0c9f1d2e3a4b5c6d7e",
    "channel": "oncall",
    "group_key": "server=gpu1:30000",
    "cause": "new",
    "status": "sent",
    "reason": "",
    "title": "[FIRING critical] The draft is dead (server=gpu1:30000)",
    "attempts": 2,
    "created": "2026-03-01T11:59:58.000Z",
    "next_attempt": None,
    "finished": "2026-03-01T12:00:01.000Z",
    "body_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}
DELIVERIES = {"deliveries": [DELIVERY], "next_cursor": None}
DETAIL = {
    **DELIVERY,
    "attempt_log": [
        {"at": "2026-03-01T11:59:58.000Z", "outcome": "retry", "status_code": 503, "latency_ms": 12,
         "reason": "HTTP 503"},
        {"at": "2026-03-01T12:00:01.000Z", "outcome": "delivered", "status_code": 204, "latency_ms": 9,
         "reason": ""},
    ],
    "notification": {"status": "firing", "alerts": []},
}  # fmt: skip
REPLAYED = {"id": 16, "status": "pending"}
