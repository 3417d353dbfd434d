"""What names an alert: its series (fingerprint), and one fire of it (alert id)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import orjson

FINGERPRINT_CHARACTERS = 32


def fingerprint_of(rule: str, labels: Mapping[str, str]) -> str:
    """Return the hash of rule and labels, hex: the same in every process and for each fire of the series."""
    text = orjson.dumps([rule, dict(labels)], option=orjson.OPT_SORT_KEYS)
    return sha256(text).hexdigest()[:FINGERPRINT_CHARACTERS]


def alert_id_of(fingerprint: str, fired_ms: int) -> str:
    """Return the name of the fire that began then: whoever decides it gives it the same one."""
    return f"{fingerprint[:16]}-{fired_ms:x}"
