"""How an API is reached: address, keys, tenant headers, certificates. No key stands in a file or a URL."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import httpx

from specscope_collectors.access import read_key
from specscope_collectors.config import (
    MIB,
    AskedBy,
    CollectorOptions,
    OptionsError,
    TargetError,
    parse_target,
)

MAX_BODY_BYTES = 12 * MIB
"""Of one answer; decoded it takes some six times as much. What is larger is asked for in halves."""
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_ASKED_BY = AskedBy("url", "name the key with token_env, or with user and password_env")
_SET_BY_US = frozenset({"authorization", "host", "accept-encoding", "content-length", "connection"})


class ApiConfigError(ValueError):
    """This cannot be asked as written; the message names the input, the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One API and how to reach it."""

    url: str
    auth: str | None = field(default=None, repr=False)
    """Value of the Authorization header."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: CollectorOptions
    cert_file: str | None = None
    key_file: str | None = None

    def client(self) -> httpx.AsyncClient:
        """Return a client for it: no environment proxies, no redirects."""
        context = self.options.tls_context() if self.url.startswith("https:") else None
        if context is not None and self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file)
        return httpx.AsyncClient(
            verify=context or False,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None),
            limits=httpx.Limits(max_connections=2),
        )


def api_url(text: str) -> str:
    """Return the base URL in front of ``/api/v1``. Raises `ApiConfigError`."""
    text = re.sub(r"/(?:api(?:/v1)?|graph)?/*$", "", text.strip())
    try:
        return parse_target(text if "://" in text else f"http://{text}", _ASKED_BY).base_url
    except TargetError as error:
        raise ApiConfigError(str(error)) from None


def authorization(
    *,
    token_env: str | None = None,
    token_file: str | None = None,
    user: str | None = None,
    password_env: str | None = None,
    password_file: str | None = None,
) -> str | None:
    """Return the value of the Authorization header; None without a key. Raises `ApiConfigError`."""
    problems: list[str] = []
    token = read_key(token_env, token_file, "token", problems)
    password = read_key(password_env, password_file, "password", problems)
    if token is not None and user is not None:
        problems.append("both a token and a user are given; leave one of them out")
    if (user is None) is not (password is None) and not problems:
        problems.append("user and password go together: give user, and password_env or password_file")
    if problems:
        raise ApiConfigError("; ".join(problems).replace("api_key_", ""))
    if token is not None:
        return f"Bearer {token}"
    if user is None:
        return None
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def connection(
    url: str,
    options: CollectorOptions,
    *,
    auth: str | None,
    headers: Mapping[str, str],
    timeout_seconds: float,
    tls_verify: bool | None = None,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
) -> Connection:
    """Return the connection, checked. Raises `ApiConfigError`."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _SET_BY_US:
            raise ApiConfigError(f"headers: {name[:40]!r} cannot be set; name headers such as X-Scope-OrgID")
        if not (value.isascii() and value.isprintable()):
            raise ApiConfigError(f"headers: the value of {name} holds characters that no header can carry")
    changes = {"tls_verify": tls_verify, "ca_file": ca_file}
    try:
        own = replace(
            options,
            scrape_timeout_seconds=timeout_seconds,
            max_body_bytes=MAX_BODY_BYTES,
            api_key=None,
            **{name: value for name, value in changes.items() if value is not None},  # type: ignore[arg-type]
        )
        made = Connection(
            url=api_url(url),
            auth=auth,
            headers=dict(headers),
            options=own,
            cert_file=cert_file,
            key_file=key_file,
        )
        if cert_file is not None:
            _check_certificate(cert_file, key_file)
    except OptionsError as error:
        raise ApiConfigError(str(error)) from None
    return made


def _check_certificate(cert_file: str, key_file: str | None) -> None:
    try:
        ssl.create_default_context().load_cert_chain(cert_file, key_file)
    except OSError as error:
        raise ApiConfigError(
            f"cert_file = {cert_file!r} cannot be used ({error.strerror or error}); name PEM files"
        ) from None
