"""A channel's row made ready to send with: secrets opened, references read, settings checked again."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from specscope_server.alerts.channels.contract import ChannelConfig, ChannelKind
from specscope_server.alerts.channels.kinds import kind_of
from specscope_server.alerts.channels.secrets import (
    EVERYTHING,
    References,
    Seal,
    resolved,
    secret_fields,
)
from specscope_server.alerts.channels.validation import validated

FROM_FILE, FROM_API = "file", "api"


@dataclass(frozen=True, slots=True)
class Vault:
    """What opens the secrets of channels."""

    seal: Seal = field(default_factory=lambda: Seal(()))
    api_references: References = field(default_factory=References)

    def references(self, origin: str) -> References:
        """Return what a channel may name: the operator's file anything."""
        return EVERYTHING if origin == FROM_FILE else self.api_references


@dataclass(frozen=True, slots=True)
class Opened:
    """A channel that can be sent with."""

    name: str
    origin: str
    kind: ChannelKind
    config: ChannelConfig


def open_channel(
    name: str, kind_name: str, origin: str, config: str, secrets: bytes | None, vault: Vault
) -> Opened:
    """Return the channel. Raises `InvalidInput` for a secret that is missing, or wrong settings."""
    kind = kind_of(kind_name)
    values = {**msgspec.json.decode(config, type=dict), **vault.seal.open(name, secrets)}
    ready = resolved(values, secret_fields(kind.config), vault.references(origin))
    return Opened(name, origin, kind, validated(kind, ready, f"channel {name!r}"))
