"""What the user says of an API and of its servers, and what is made of that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import msgspec

from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import Sink, Target
from specscope_collectors.sources.prometheus.api import Api
from specscope_collectors.sources.prometheus.connection import authorization, connection
from specscope_collectors.sources.prometheus.discovery import Found, Question
from specscope_collectors.sources.prometheus.durations import duration_ms
from specscope_collectors.sources.prometheus.history import History
from specscope_collectors.sources.prometheus.segment import InThread, Reading
from specscope_collectors.sources.prometheus.selectors import (
    check_label_name,
    check_matcher,
    equals,
    named,
    selector,
)


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[prometheus]]`` table."""

    url: str
    """In front of ``/api/v1``, e.g. ``http://prometheus:9090``, without a key."""
    match: tuple[str, ...] = ()
    """Further label matchers, e.g. ``cluster="a"``."""
    server_label: str = "instance"
    """One server for each value of this label."""
    server_name: str = "{value}"
    """Name of a server; ``{value}`` is the value of the label."""
    servers: tuple[str, ...] = ()
    """Only these values of the label; all without."""
    back_fill: str = "30d"
    """How much of the past to take in."""
    raw: str = "1d"
    """How much of it scrape by scrape; what is older is read every `step`."""
    step: str = "5m"
    """Between two values of what is read in steps."""
    follow: bool = True
    """Go on with what comes."""
    lag: str = "30s"
    """How far behind to follow, so that scrapes are whole."""
    timeout: str = "60s"
    """For one answer."""
    token_env: str | None = None
    """Environment variable with a bearer token."""
    token_file: str | None = None
    """File that holds it."""
    user: str | None = None
    """For basic authentication, with a password."""
    password_env: str | None = None
    """Environment variable with the password."""
    password_file: str | None = None
    """File that holds it."""
    headers: dict[str, str] = {}
    """Sent with each question, e.g. ``X-Scope-OrgID``."""
    tls_verify: bool | None = None
    """Whether certificates are checked."""
    ca_file: str | None = None
    """PEM file of the authority that signed its certificate."""
    cert_file: str | None = None
    """Client certificate."""
    key_file: str | None = None
    """Key of the client certificate."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for name in ("back_fill", "raw", "step", "lag", "timeout"):
            _checked(name, partial(duration_ms, getattr(self, name)))
        for name in ("step", "timeout"):
            if duration_ms(getattr(self, name)) < 1_000:
                raise ValueError(f"{name} = {getattr(self, name)!r}: must be 1s or more")
        for matcher in self.match:
            _checked("match", partial(check_matcher, matcher))
        _checked("server_label", partial(check_label_name, self.server_label))
        if "{value}" not in self.server_name:
            raise ValueError(f"server_name = {self.server_name!r}: has no {{value}}; all would be one server")


def _checked(name: str, check: Callable[[], Any]) -> None:
    try:
        check()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def make_api(config: Config, options: CollectorOptions) -> tuple[httpx.AsyncClient, Api]:
    """Return the API and its client, which the caller closes. Raises `ApiConfigError`."""
    auth = authorization(
        token_env=config.token_env,
        token_file=config.token_file,
        user=config.user,
        password_env=config.password_env,
        password_file=config.password_file,
    )
    reached = connection(
        config.url,
        options,
        auth=auth,
        headers=config.headers,
        timeout_seconds=duration_ms(config.timeout) / 1000,
        tls_verify=config.tls_verify,
        ca_file=config.ca_file,
        cert_file=config.cert_file,
        key_file=config.key_file,
    )
    client = reached.client()
    return client, Api(reached.url, client, reached.options, reached.headers, auth=auth)


def question(config: Config, from_ms: int, to_ms: int) -> Question:
    """Return what to look for within a time."""
    return Question(config.match, config.server_label, config.server_name, from_ms, to_ms, config.servers)


def history_of(
    config: Config,
    api: Api,
    found: Found,
    target: Target,
    *,
    sink: Sink,
    in_thread: InThread,
    max_series: int,
) -> History:
    """Return the history of one server that was found; `History.open` it before use."""
    value = found.servers[target.name]
    matchers = (named(found.names), equals(config.server_label, value), *config.match)
    reading = Reading(
        api=api,
        target=target,
        selector=selector(*matchers),
        raw_ms=duration_ms(config.raw),
        step_ms=duration_ms(config.step),
        in_thread=in_thread,
    )
    return History(reading, sink, max_series)


def history_target(name: str, api: Api) -> Target:
    """Return a server that is known from its history alone."""
    return Target(name=name, base_url=f"{api.url} (Prometheus)")
