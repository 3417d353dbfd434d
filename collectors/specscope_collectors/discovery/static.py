"""Servers listed in the collectors' file itself, read alike."""

from __future__ import annotations

from dataclasses import dataclass

from specscope_collectors.discoveries import Answer, Discover, DiscoveryContext, Listed


class Config(Discover, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list of servers that share key, certificates and labels."""

    targets: list[str]
    """`HOST:PORT`, URL or `NAME=URL` each."""

    def __post_init__(self) -> None:
        """Refuse an empty list."""
        Discover.__post_init__(self)
        if not self.targets:
            raise ValueError('targets is empty; list servers: targets = ["gpu1:30000"]')


@dataclass(frozen=True, slots=True)
class Static:
    """Always answers the same."""

    config: Config
    keep_seconds: None = None

    @property
    def asked(self) -> str:
        """Return the first of the list."""
        return self.config.targets[0]

    async def look(self) -> Answer:
        """Return the list."""
        return Answer(tuple(Listed(url) for url in self.config.targets))

    async def close(self) -> None:
        """Nothing is open."""


def build(config: Config, context: DiscoveryContext) -> Static:
    """Return the discovery."""
    return Static(config)
