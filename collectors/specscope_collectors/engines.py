"""Finds the engines by convention: every folder under ``sources/`` with a module ``engine``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from functools import cache
from importlib.util import find_spec

from specscope_collectors import sources
from specscope_collectors.engine import Engine

FIRST = "sglang"
"""Engine that a target is taken for until it has said otherwise: which remedies a silent one gets."""


@cache
def engines() -> tuple[Engine, ...]:
    """Return all engines, the one that is assumed first in front."""
    names = [module.name for module in pkgutil.iter_modules(sources.__path__) if module.ispkg]
    paths = [f"{sources.__name__}.{name}.engine" for name in sorted(names)]
    found: list[Engine] = [importlib.import_module(path).ENGINE for path in paths if find_spec(path)]
    return tuple(sorted(found, key=lambda engine: engine.name != FIRST))


def engine_named(name: str | None) -> Engine:
    """Return an engine by its name; the one that is assumed first for None and for one not known here."""
    return next((engine for engine in engines() if engine.name == name), engines()[0])


def engine_of(names: Collection[str], last: Engine) -> Engine | None:
    """Return the engine that wrote samples of these names: ``last`` if it may have; None if no engine did."""
    if last.claims(names):
        return last
    return next((engine for engine in engines() if engine.claims(names)), None)


@cache
def wanted_names() -> frozenset[str]:
    """Return the names of all samples that any engine's mapping uses."""
    return frozenset[str]().union(*(engine.wanted for engine in engines()))


@cache
def telling_names() -> frozenset[str]:
    """Return the names of all samples by which any engine's version is told."""
    return frozenset[str]().union(*(engine.telling for engine in engines()))


def titles() -> str:
    """Return the engines' names for a sentence: ``SGLang or vLLM``."""
    return " or ".join(engine.title for engine in engines())
