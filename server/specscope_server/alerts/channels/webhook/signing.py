"""Signatures of Standard Webhooks 1.0.0 (https://www.standardwebhooks.com), symmetric: ``v1`` (pure).

HMAC-SHA256 over ``id.timestamp.body`` with the bytes behind ``whsec_`` (base64); several secrets give several
signatures, so that a receiver can change to a new one while both are sent.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

PREFIX = "whsec_"
SHORTEST_BYTES, LONGEST_BYTES = 24, 64


def key_of(secret: str) -> bytes:
    """Return the key's bytes. Raises `ValueError` with the remedy; never repeats the secret."""
    text = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64; write whsec_ and the base64 of 24 to 64 random bytes") from None
    if not secret.startswith(PREFIX) or not SHORTEST_BYTES <= len(key) <= LONGEST_BYTES:
        raise ValueError(
            f"is no secret of {SHORTEST_BYTES} to {LONGEST_BYTES} bytes with whsec_ before it; make one: "
            'echo "whsec_$(openssl rand -base64 32)"'
        )
    return key


def signature(key: bytes, webhook_id: str, timestamp_seconds: int, body: bytes) -> str:
    """Return ``v1,BASE64``."""
    signed = f"{webhook_id}.{timestamp_seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(keys: Iterable[bytes], webhook_id: str, timestamp_seconds: int, body: bytes) -> dict[str, str]:
    """Return the three headers; without keys only the first two."""
    found = {"webhook-id": webhook_id, "webhook-timestamp": str(timestamp_seconds)}
    signatures = [signature(key, webhook_id, timestamp_seconds, body) for key in keys]
    return {**found, "webhook-signature": " ".join(signatures)} if signatures else found
