"""Types of settings that several kinds have, with what is wrong with a value said in words."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, Field, SecretStr

REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}|file:(/.+)")
"""Names a secret that is kept elsewhere: ``${env:NAME}`` or ``file:/PATH``."""
FORBIDDEN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding",
     "upgrade", "te", "trailer", "expect", "webhook-id", "webhook-timestamp", "webhook-signature"}
)  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
MAX_URL = 2_000
MAX_HOST, MAX_HOST_PART = 253, 63


def is_reference(text: str) -> bool:
    """Tell whether the text only names where a secret is."""
    return REFERENCE.fullmatch(text) is not None


def check_url(text: str) -> str:
    """Return the URL, in ASCII. Raises `ValueError` with the remedy; never repeats the URL."""
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or parts.port > 0
        host = httpx.URL(text).raw_host.decode("ascii")
    except (ValueError, httpx.InvalidURL, UnicodeError):
        raise ValueError("is no URL; write https://HOST/PATH") from None
    if parts.scheme not in ("http", "https") or not host or not port_is_fine or len(text) > MAX_URL:
        raise ValueError("is not the URL of a receiver; write https://HOST/PATH")
    if "@" in parts.netloc:
        raise ValueError("holds a user or password; give them in fields of their own, which are kept secret")
    if not text.isprintable() or " " in text or parts.fragment:
        raise ValueError("holds characters that no URL has, or a fragment; remove them")
    check_host(host)
    return str(httpx.URL(text))


def check_host(host: str) -> str:
    """Return the name or address of a machine. Raises `ValueError`: each part of a name has 1 to 63
    characters (RFC 1035 §2.3.4), and no resolver takes another one.
    """
    parts = host.removesuffix(".").split(".")
    if len(host) > MAX_HOST or not all(1 <= len(part) <= MAX_HOST_PART for part in parts):
        raise ValueError("holds a name that no machine has: between its points are 1 to 63 characters")
    return host


def check_line(text: str) -> str:
    """Return a text for one line. Raises `ValueError`."""
    if not text.isprintable():
        raise ValueError(
            "holds a line break or another character that cannot be seen; write one line of text"
        )
    return text


def _secret_url(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    return value if is_reference(text) else SecretStr(check_url(text))


def _secret_line(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text or not text.isprintable() or not text.isascii():
        raise ValueError("is empty or holds characters that cannot be sent; check how it was copied")
    return value


def _header_text(value: SecretStr) -> SecretStr:
    text = _secret_line(value).get_secret_value()
    if text != text.strip():
        raise ValueError("begins or ends with a space, which no header may; check how it was copied")
    return value


def _headers(value: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, text in value.items():
        if not _TOKEN.fullmatch(name) or name.lower() in FORBIDDEN_HEADERS:
            raise ValueError(f"the header {name[:40]!r} cannot be set; leave it out")
        _header_text(text)
    return value


Url = Annotated[str, AfterValidator(check_url)]
"""Shown to everybody who may read channels."""
SecretUrl = Annotated[SecretStr, AfterValidator(_secret_url)]
"""A URL that is itself the credential."""
SecretText = Annotated[SecretStr, AfterValidator(_secret_line)]
SecretHeader = Annotated[SecretStr, AfterValidator(_header_text)]
"""The value of a header of HTTP."""
Line = Annotated[str, AfterValidator(check_line)]
"""A text that becomes a part of a header: anything but line breaks and characters that cannot be seen."""
Headers = Annotated[dict[str, SecretHeader], AfterValidator(_headers), Field(max_length=20)]
