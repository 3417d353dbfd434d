"""Find the kinds of channels by convention: each folder here with a ``kind.py``."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from specscope_server.alerts import channels
from specscope_server.alerts.channels.contract import ChannelKind
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.names import did_you_mean


@lru_cache(maxsize=1)
def kinds() -> dict[str, ChannelKind]:
    """Return name → kind; a kind is called as its folder."""
    found: dict[str, ChannelKind] = {}
    for module in sorted(pkgutil.iter_modules(channels.__path__), key=lambda entry: entry.name):
        if not module.ispkg:
            continue
        package = importlib.import_module(f"{channels.__name__}.{module.name}")
        if any(inner.name == "kind" for inner in pkgutil.iter_modules(package.__path__)):
            kind: ChannelKind = importlib.import_module(f"{package.__name__}.kind").KIND
            assert kind.name == module.name, f"{package.__name__} offers a kind called {kind.name}"
            found[kind.name] = kind
    return found


def kind_of(name: str) -> ChannelKind:
    """Return one kind; raise `InvalidInput` with the nearest name that exists."""
    known = kinds()
    if name not in known:
        hint = did_you_mean(name, known)
        raise InvalidInput(f"there is no kind of channel {name[:60]!r}.{hint} Kinds: {', '.join(known)}")
    return known[name]
