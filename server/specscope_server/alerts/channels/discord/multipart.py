"""A form of one JSON part and one file, as Discord takes it (RFC 7578; pure)."""

from __future__ import annotations

from hashlib import sha256


def multipart(payload: bytes, file_name: str, content: bytes, seed: str) -> tuple[str, bytes]:
    """Return (content type, body). The boundary follows from ``seed``: each attempt sends the same bytes."""
    boundary = f"specscope-{sha256(seed.encode()).hexdigest()}"
    parts = [
        ('form-data; name="payload_json"', "application/json", payload),
        (f'form-data; name="files[0]"; filename="{file_name}"', "image/png", content),
    ]
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: {where}\r\nContent-Type: {kind}\r\n\r\n".encode()
        + part
        + b"\r\n"
        for where, kind, part in parts
    )
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()
