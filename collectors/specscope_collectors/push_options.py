"""Where and how batches are pushed."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from specscope_collectors.config import OptionsError

MIB = 1024 * 1024
KEEP_ALIVE_SECONDS = 30.0
"""Longer than between two reports, so that the connection stays; shorter than servers and proxies keep it."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOptions:
    """Everything about pushing that a user may set, and limits that tests set."""

    server: str
    """Base URL of Specscope."""
    token_file: Path | None = None
    """Read again when the server refuses the token, so that it can be exchanged."""
    token: str = ""
    """Used when there is no file."""
    tls_verify: bool = True
    ca_file: str | None = None
    timeout_seconds: float = 60.0
    most_batches: int = 500
    """In one request."""
    most_bytes: int = 900 * 1024
    """In one request, compressed: many proxies take 1 MiB."""
    most_raw_bytes: int = 8 * MIB
    """In one request, unpacked: servers take 32 MiB unless told otherwise."""
    linger_seconds: float = 1.0
    """Between requests when little is waiting, so that it becomes more."""
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 60.0
    health_seconds: float = 15.0
    """Between two reports of how pushing goes."""
    stuck_seconds: float = 1_800.0
    """After which a batch that makes the server fail (500) is set aside, so that others get through."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            shown = self.server.rpartition("@")[2]
            raise OptionsError(f"--server {shown!r}: not the URL of a Specscope; write https://HOST[:PORT]")
        if "@" in parts.netloc:
            raise OptionsError(
                "--server: leave user and password out of the URL; the token goes in --token-file"
            )
        self.read_token()

    @property
    def url(self) -> str:
        """Where batches go."""
        return f"{self.server.rstrip('/')}/api/v1/ingest"

    @property
    def is_clear_text(self) -> bool:
        """Whether the token travels over a network unencrypted."""
        parts = urlsplit(self.server)
        return parts.scheme == "http" and parts.hostname not in LOOPBACK

    def read_token(self) -> str:
        """Return the token; "" without one. Raises `OptionsError`."""
        if self.token_file is None:
            return self.token
        try:
            token = self.token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise OptionsError(
                f"the token file {self.token_file} cannot be read ({reason}); name a readable text file"
            ) from None
        if not token or not token.isascii() or not token.isprintable():
            raise OptionsError(
                f"the token file {self.token_file} holds no token; write into it what specscope token create "
                "printed"
            )
        return token

    def make_client(self) -> httpx.Client:
        """Return a client; proxies are taken from the environment. Raises `OptionsError`."""
        try:
            verify = ssl.create_default_context(cafile=self.ca_file) if self.tls_verify else False
        except OSError as error:
            raise OptionsError(
                f"--ca-file {self.ca_file!r} cannot be read ({error.strerror or error}); name a PEM file"
            ) from error
        timeout = httpx.Timeout(self.timeout_seconds, connect=min(10.0, self.timeout_seconds))
        limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS)
        return httpx.Client(verify=verify, timeout=timeout, limits=limits, follow_redirects=False)
