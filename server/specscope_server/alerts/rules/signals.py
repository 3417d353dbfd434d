"""Every signal there is, found by convention: each domain's ``signals.py: SIGNALS``."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

import specscope_server
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.signal import Signal


@lru_cache(maxsize=1)
def signals() -> dict[str, Signal]:
    """Return name → signal; names must not repeat."""
    found: dict[str, Signal] = {}
    for package in sorted(pkgutil.iter_modules(specscope_server.__path__), key=lambda entry: entry.name):
        for one in _signals_of(package.name) if package.ispkg else ():
            if one.name in found:
                raise RuntimeError(f"two signals are called {one.name!r}; the second is in {package.name}")
            found[one.name] = one
    return found


def _signals_of(domain: str) -> tuple[Signal, ...]:
    package = importlib.import_module(f"specscope_server.{domain}")
    if not any(module.name == "signals" for module in pkgutil.iter_modules(package.__path__)):
        return ()
    offered: tuple[Signal, ...] = importlib.import_module(f"{package.__name__}.signals").SIGNALS
    return offered


def signal(name: str) -> Signal:
    """Return one signal; raise `ValueError` with the nearest name that exists."""
    known = signals()
    if name not in known:
        hint = did_you_mean(name, known)
        raise ValueError(
            f"there is no signal {name[:100]!r}.{hint} They are listed at /api/v1/alerts/signals and in the "
            "reference of alert rules"
        )
    return known[name]
