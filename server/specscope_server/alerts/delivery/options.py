"""What delivering needs from the process that does it."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from fastapi import FastAPI

from specscope_server.alerts.channels.notification import CardFigure
from specscope_server.alerts.channels.opening import FROM_FILE, Opened, Vault
from specscope_server.alerts.channels.secrets import References, Seal
from specscope_server.alerts.delivery.addresses import AddressPolicy, Network, parse_networks
from specscope_server.alerts.delivery.connecting import Resolver, resolve
from specscope_server.alerts.delivery.retrying import Backoff
from specscope_server.alerts.pictures import PanelPictures
from specscope_server.settings import Settings

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
        is_trusted = channel.origin == FROM_FILE or self.vault.api_may_allow_private
        return AddressPolicy(channel.config.allow_private and is_trusted, self.networks)


def options_of(settings: Settings, pictures: Pictures = no_pictures) -> DeliveryOptions:
    """Return the options that the operator's settings say. Raises `InvalidInput`."""
    given = settings.secret_key.get_secret_value() if settings.secret_key is not None else ""
    keys = [key.strip() for key in given.split(",") if key.strip()]
    references = References(folder=settings.alerts_secrets_folder)
    return DeliveryOptions(
        vault=Vault(Seal(keys), references, settings.alerts_allow_private),
        networks=parse_networks(settings.alerts_private_networks),
        pictures=pictures,
        external_url=settings.public_url or "",
    )


def delivery_options(app: FastAPI) -> DeliveryOptions:
    """Return the options of this process, which its endpoints and its deliverer share."""
    found = getattr(app.state, "delivery_options", None)
    if found is None:
        pictures = PanelPictures(app.state.specscope)
        found = app.state.delivery_options = options_of(app.state.settings, pictures)
    assert isinstance(found, DeliveryOptions)
    return found
