"""What delivering needs from the process that does it."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from specscope_server.alerts.channels.notification import CardFigure
from specscope_server.alerts.channels.opening import FROM_FILE, Opened, Vault
from specscope_server.alerts.delivery.addresses import AddressPolicy, Network
from specscope_server.alerts.delivery.connecting import Resolver, resolve
from specscope_server.alerts.delivery.retrying import Backoff

Pictures: TypeAlias = Callable[[CardFigure], bytes | None]
"""Returns a PNG, or None where none can be made; bounded in time."""


def no_pictures(_figure: CardFigure) -> bytes | None:
    """Make none."""
    return None


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """Everything that may differ between installations, and in tests."""

    vault: Vault = field(default_factory=Vault)
    networks: tuple[Network, ...] = ()
    """Private networks that every channel may reach."""
    api_may_allow_private: bool = False
    """Whether ``allow_private`` counts for channels that were made by REST."""
    pictures: Pictures = no_pictures
    external_url: str = ""
    backoff: Backoff = field(default_factory=Backoff)
    resolver: Resolver = resolve
    tls: ssl.SSLContext | None = None
    """None = the system's authorities."""
    # Spreads retries; nothing is guessed from it that must stay secret.
    chance: random.Random = field(default_factory=random.Random)

    def policy(self, channel: Opened) -> AddressPolicy:
        """Return what the channel may connect to."""
        is_trusted = channel.origin == FROM_FILE or self.api_may_allow_private
        return AddressPolicy(channel.config.allow_private and is_trusted, self.networks)
