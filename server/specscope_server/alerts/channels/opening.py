"""A channel's row made ready to send with: secrets opened, references read, settings checked again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
from specscope_server.kit.errors import InvalidInput

FROM_FILE, FROM_API = "file", "api"


@dataclass(frozen=True, slots=True)
class Vault:
    """What opens the secrets of channels."""

    seal: Seal = field(default_factory=lambda: Seal(()))
    api_references: References = field(default_factory=References)
    api_may_allow_private: bool = False
    """Whether a channel that is made by REST may set ``allow_private``."""
    of_file: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    """Secrets that stand in the alerts file: name of the channel → field → value. Never stored."""

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
    values = {**msgspec.json.decode(config, type=dict), **_secrets(name, origin, secrets, vault)}
    ready = resolved(values, secret_fields(kind.config), vault.references(origin))
    return Opened(name, origin, kind, validated(kind, ready, f"channel {name!r}"))


def _secrets(name: str, origin: str, sealed: bytes | None, vault: Vault) -> dict[str, Any]:
    if origin != FROM_FILE:
        return vault.seal.open(name, sealed)
    if name not in vault.of_file:
        raise InvalidInput(
            f"the channel {name!r} stands in an alerts file that this process did not read; start every "
            "process with the same --alerts"
        )
    return vault.of_file[name]
