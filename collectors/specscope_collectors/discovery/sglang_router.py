"""Servers behind an SGLang router (model gateway), from its list of workers."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import msgspec

from specscope_collectors.access import read_key
from specscope_collectors.config import AskedBy, CollectorOptions, parse_target
from specscope_collectors.discoveries import Answer, Discover, DiscoveryContext, DiscoveryError, Listed
from specscope_collectors.fetch import Answer as Fetched
from specscope_collectors.fetch import fetch, headers_for, make_client
from specscope_collectors.observations import HealthState, Target

PATHS = ("/workers", "/list_workers")
"""Newer routers list details, older ones only addresses."""
MAX_BODY_BYTES = 4 * 1024 * 1024
_RANK = re.compile(r"@\d+$")
_SPEAKS_HTTP = re.compile(r"https?://", re.IGNORECASE)


class Config(Discover, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workers of a router are watched; the router itself is not."""

    url: str
    """Base URL of the router."""
    router_api_key_env: str | None = None
    """Environment variable that holds the key of the router itself; the workers' own is `api_key_env`."""
    router_api_key_file: str | None = None
    """File that holds the key of the router."""

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        Discover.__post_init__(self)
        parse_target(self.url, AskedBy("url =", "give router_api_key_env or router_api_key_file instead"))
        problems: list[str] = []
        read_key(self.router_api_key_env, self.router_api_key_file, "key", problems, "router_")
        if problems:
            raise ValueError("; ".join(problems))


class Worker(msgspec.Struct, frozen=True):
    """What is used of a worker's details."""

    url: str
    worker_type: str | None = None
    model_id: str | None = None


class Workers(msgspec.Struct, frozen=True):
    """Answer of ``/workers``."""

    workers: list[Worker]


class Urls(msgspec.Struct, frozen=True):
    """Answer of ``/list_workers``."""

    urls: list[str]


class SglangRouter:
    """Asks one router; the connection is opened with the first look."""

    keep_seconds: float | None = None

    def __init__(self, config: Config, options: CollectorOptions) -> None:
        self._router: Target = parse_target(config.url)
        self._config = config
        self._options = options
        self._client: httpx.AsyncClient | None = None

    @property
    def asked(self) -> str:
        """Return the router's URL."""
        return self._router.base_url

    async def look(self) -> Answer:
        """Read the list. Raises `DiscoveryError`."""
        options = self._own_options()
        self._client = self._client or make_client(options, with_tls=self.asked.startswith("https:"))
        for path in PATHS:
            url = self.asked + path
            headers = headers_for(url, self._router, options)
            answer = await fetch(self._client, url, options=options, headers=headers)
            if answer.status != 404:
                break
        if not answer.ok:
            raise _error(answer, self.asked)
        return self._read(answer)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.aclose()

    def _own_options(self) -> CollectorOptions:
        """Return how to ask the router: with its own key, never with the workers'."""
        config, problems = self._config, list[str]()
        key = read_key(config.router_api_key_env, config.router_api_key_file, self.asked, problems, "router_")
        if problems:
            raise DiscoveryError("; ".join(problems), state=HealthState.UNAUTHORIZED)
        size = min(self._options.max_body_bytes, MAX_BODY_BYTES)
        return replace(self._options, api_key=key, max_body_bytes=size)

    def _read(self, answer: Fetched) -> Answer:
        try:
            workers = read_workers(answer.body)
        except (msgspec.MsgspecError, RecursionError) as error:
            words = f"{answer.url} answers something else than a list of workers: {str(error)[:200]}"
            remedy = "name the base URL of an SGLang router"
            raise DiscoveryError(words, state=HealthState.NOT_THIS_ENGINE, remedy=remedy) from None
        listed, refused = [], []
        for worker in workers:
            reason = self._refusal(worker.url)
            if reason:
                refused.append(f"{_shown(worker.url)}: {reason}")
            else:
                listed.append(_listed(worker))
        return Answer(tuple(listed), tuple(refused))

    def _refusal(self, url: str) -> str:
        """Return why a worker's address, which comes from a peer, is not asked; '' for one that may be."""
        if not _SPEAKS_HTTP.match(url):
            return "only http:// and https:// workers have metrics that can be read"
        address = _address(url)
        if address is not None and address.is_link_local:
            return "is a link-local address, where clouds keep their metadata; register workers under another"
        if _is_local(url) and not _is_local(self.asked):
            return "is an address of the router's own machine; register workers under a name that others know"
        return ""


def read_workers(body: bytes) -> list[Worker]:
    """Return the workers of either form. Raises msgspec.MsgspecError, and RecursionError for deep nesting."""
    if b'"urls"' in body and b'"workers"' not in body:
        return [Worker(url) for url in msgspec.json.decode(body, type=Urls).urls]
    return msgspec.json.decode(body, type=Workers).workers


def _listed(worker: Worker) -> Listed:
    labels = {"worker_type": worker.worker_type, "model_id": worker.model_id}
    known = {name: value for name, value in labels.items() if value}
    return Listed(
        _RANK.sub("", worker.url.rstrip("/")), labels=known
    )  # URL@RANK: one server of several ranks


def _is_local(url: str) -> bool:
    address = _address(url)
    if address is None:
        return "localhost" in url.partition("://")[2].split("/")[0].lower().split(":")
    return address.is_loopback or address.is_unspecified


def _address(url: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address in a URL, also one written as a resolver reads it (``127.1``); None for a name."""
    try:
        host = (urlsplit(url).hostname or "").partition("%")[0]
    except ValueError:
        return None
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        return getattr(address, "ipv4_mapped", None) or address
    with contextlib.suppress(OSError, ValueError):
        return ipaddress.ip_address(socket.inet_aton(host))
    return None


def _shown(url: str) -> str:
    return url.rpartition("@")[2][:80] if "@" in url else url[:80]


def _error(answer: Fetched, asked: str) -> DiscoveryError:
    remedy, words, state = answer.remedy, answer.detail, answer.state
    if state is HealthState.UNAUTHORIZED:
        remedy = "give the router's key: router_api_key_env or router_api_key_file"
    elif state is HealthState.UNREACHABLE:
        remedy = "check that the router runs, and its host and port"
    elif answer.status == 404:
        state, remedy = HealthState.NOT_THIS_ENGINE, "name the base URL of an SGLang router"
        words = f"{asked} lists no workers (HTTP 404 for {' and '.join(PATHS)})"
    return DiscoveryError(words, state=state, remedy=remedy)


def build(config: Config, context: DiscoveryContext) -> SglangRouter:
    """Return the discovery."""
    return SglangRouter(config, context.options)
