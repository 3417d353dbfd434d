"""What a discovery listed last, and for how long each server outlives its absence. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from specscope_collectors.discoveries import Discover, Listed
from specscope_collectors.observations import Target


class Known(msgspec.Struct, frozen=True, array_like=True):
    """One server of the last lists."""

    target: Target
    labels: dict[str, str]


@dataclass(slots=True)
class Memory:
    """The servers of one discovery by base URL. Times are seconds of a clock that never runs backwards."""

    known: dict[str, Known] = field(default_factory=dict)
    missing_since: dict[str, float] = field(default_factory=dict)
    answered: float = -math.inf
    """When a list was read last."""

    def take(self, listed: Sequence[Known], now: float, grace_seconds: float) -> None:
        """Take a good answer; what it leaves out stays for the grace."""
        self.answered = now
        fresh = {one.target.base_url: one for one in listed}
        for url in self.known.keys() - fresh.keys():
            if now - self.missing_since.setdefault(url, now) >= grace_seconds:
                self.drop(url)
        for url, one in fresh.items():
            self.missing_since.pop(url, None)
            self.known[url] = one

    def drop(self, url: str) -> None:
        """Forget one server."""
        self.known.pop(url, None)
        self.missing_since.pop(url, None)

    def drop_all(self) -> None:
        """Forget all servers."""
        self.known.clear()
        self.missing_since.clear()

    def encode(self) -> bytes:
        """Return what outlives a restart."""
        return msgspec.msgpack.encode(list(self.known.values()))

    def restore(self, data: bytes, now: float) -> None:
        """Go on from `encode`; what cannot be read is forgotten. The grace begins anew."""
        try:
            found = msgspec.msgpack.decode(data, type=list[Known])
        except msgspec.MsgspecError:
            found = []
        self.known = {one.target.base_url: one for one in found}
        self.answered = now

    @property
    def absent(self) -> int:
        """How many servers are watched though the last list did not name them."""
        return len(self.missing_since)


def unique(found: Sequence[Known]) -> tuple[list[Known], list[str]]:
    """Return one entry for each address and each name, and in words what was left out."""
    by_url: dict[str, Known] = {}
    by_name: dict[str, Known] = {}
    refused = []
    for one in found:
        twin = by_name.get(one.target.name)
        if one.target.base_url in by_url:
            continue  # listed twice: the same server
        if twin is not None:
            refused.append(
                f"{one.target.base_url} has the name {one.target.name!r} of {twin.target.base_url}"
            )
            continue
        by_url[one.target.base_url] = by_name[one.target.name] = one
    return list(by_url.values()), refused


def bounded_labels(config: Discover, listed: Listed) -> dict[str, str]:
    """Return the labels of one server: what the user says wins over what the discovery says."""
    merged: Mapping[str, str] = {**listed.labels, **config.labels}
    return dict(merged)
