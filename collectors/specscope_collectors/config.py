"""What a collector is told: options, and the targets to watch as the user writes them."""

from __future__ import annotations

import hashlib
import math
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import httpx

from specscope_collectors.observations import Target

MIB = 1024 * 1024
DEFAULT_PORTS = {"http": 80, "https": 443}
_NAMED = re.compile(r"(?P<name>[^=/:\[\]]+)=(?P<url>.+)")
_FORBIDDEN = re.compile(r"[\s\x00-\x1f\x7f]")


_POSITIVE = (
    "scrape_interval_seconds", "scrape_timeout_seconds", "info_interval_seconds", "loads_interval_seconds",
    "max_body_bytes", "max_series_per_target", "concurrency",
)  # fmt: skip


class OptionsError(ValueError):
    """An option that cannot be meant; the message names it, the reason and the remedy."""


class TargetError(ValueError):
    """A target that cannot be watched as written; the message names the input, the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorOptions:
    """How targets are watched; the same for all of them."""

    scrape_interval_seconds: float = 5.0
    """Between two reads of ``/metrics``."""
    scrape_timeout_seconds: float = 4.0
    """Total time one answer may take, from connecting to the last byte."""
    info_interval_seconds: float = 300.0
    """Between two reads of ``/server_info``, which makes a round trip through every scheduler."""
    loads_interval_seconds: float = 15.0
    max_body_bytes: int = 32 * MIB
    """Of one answer, after decompression."""
    max_series_per_target: int = 20_000
    concurrency: int = 64
    """Targets that are read at the same time."""
    jitter_share: float = 0.2
    """First reads are spread over this share of the interval, so that targets are not hit in one burst."""
    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token, to the target's own origin only."""
    tls_verify: bool = True
    ca_file: str | None = None
    """PEM file of certificate authorities to trust instead of the system's."""
    loopback_name: str | None = None
    """What loopback is called in the default names of servers: it is the same address on every host."""
    ca_digest: str = field(default="", init=False, repr=False)
    """Of the content of ``ca_file``: options with other authorities are other options."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise OptionsError(f"{name} = {getattr(self, name)!r}: must be greater than 0, and finite")
        if self.ca_file is not None and self.tls_context() is not None:
            digest = hashlib.sha256(Path(self.ca_file).read_bytes()).hexdigest()
            object.__setattr__(self, "ca_digest", digest)

    def tls_context(self) -> ssl.SSLContext | None:
        """Return how to check certificates; None when they are not checked. Raises `OptionsError`."""
        if not self.tls_verify:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise OptionsError(
                f"ca_file = {self.ca_file!r} cannot be read ({error.strerror or error}); name a PEM file"
            ) from error


@dataclass(frozen=True, slots=True)
class AskedBy:
    """How messages speak of the place where a target is named."""

    where: str = "--watch"
    key_remedy: str = "set SPECSCOPE_ENGINE_API_KEY instead"


FLAG = AskedBy()


def parse_target(text: str, asked_by: AskedBy = FLAG) -> Target:
    """Return the target meant by ``gpu1:30000``, ``http://gpu1:30000/prefix`` or ``name=https://…``.

    A trailing ``/metrics`` is dropped; any other path is kept (a server behind a prefix). The name defaults
    to host:port and path. Raises `TargetError`.
    """
    name, url = _split_name(text.strip())
    parts = _split_url(url, text, asked_by)
    base_url, default_name = _compose(parts, text, asked_by.where)
    return Target(name=name or default_name, base_url=base_url)


def parse_targets(texts: Iterable[str]) -> list[Target]:
    """Return all targets; raises `TargetError` when two share a name (measurements would mix)."""
    targets: dict[str, Target] = {}
    for text in texts:
        target = parse_target(text)
        if target.name in targets:
            raise TargetError(
                f"--watch {target.name}: two targets have this name ({targets[target.name].base_url} and "
                f"{target.base_url}); name one of them: --watch NAME={target.base_url}"
            )
        targets[target.name] = target
    return list(targets.values())


def _split_name(text: str) -> tuple[str | None, str]:
    match = _NAMED.fullmatch(text)
    return (match["name"].strip(), match["url"].strip()) if match else (None, text)


def _split_url(url: str, text: str, asked_by: AskedBy) -> SplitResult:
    where = asked_by.where
    if not url or _FORBIDDEN.search(url):
        raise TargetError(
            f"{where} {text!r}: empty or with blanks inside; write HOST:PORT or http://HOST:PORT"
        )
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.port == 0:  # raises when it is no port
            raise ValueError("nothing listens on port 0")
        if parts.netloc:
            _ = httpx.URL(parts._replace(path="", query="", fragment="").geturl()).host
    except (ValueError, httpx.InvalidURL) as error:
        shown = f"…@{text.rpartition('@')[2]}" if "@" in text else text
        reason = "" if "@" in text else f" ({error})"
        raise TargetError(
            f"{where} {shown!r}: not a URL{reason}; write HOST:PORT or http://HOST:PORT"
        ) from None
    if "@" in parts.netloc:
        shown = f"{parts.scheme}://…@{parts.netloc.rpartition('@')[2]}"
        raise TargetError(
            f"{where} {shown}: credentials in the URL are not accepted, since URLs are stored and shown; "
            f"leave them out and {asked_by.key_remedy}"
        )
    return parts


def _compose(parts: SplitResult, text: str, where: str) -> tuple[str, str]:
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise TargetError(f"{where} {text!r}: scheme {scheme!r} cannot be watched; use http:// or https://")
    if not parts.hostname:
        raise TargetError(f"{where} {text!r}: no host in it; write HOST:PORT or http://HOST:PORT")
    if parts.query or parts.fragment:
        raise TargetError(
            f"{where} {text.partition('?')[0]!r}: leave out what follows '?' or '#'; only the base URL"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = re.sub(r"/metrics$", "", parts.path.rstrip("/")).rstrip("/")
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{scheme}://{host}{port}{path}", f"{host}:{parts.port or DEFAULT_PORTS[scheme]}{path}"
