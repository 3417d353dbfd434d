"""Finds the jobs by convention: every folder under ``sources/`` with a module ``job``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from specscope_collectors import sources
from specscope_collectors.job import Job, JobContext


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job: how it is configured and made."""

    source: str
    config: type[Any]
    build: Callable[[Any, JobContext], list[Job]]


@cache
def job_kinds() -> dict[str, JobKind]:
    """Return the kinds of jobs by the name of their source's folder."""
    names = [module.name for module in pkgutil.iter_modules(sources.__path__) if module.ispkg]
    kinds = (_kind(name) for name in sorted(names))
    return {kind.source: kind for kind in kinds if kind is not None}


def _kind(name: str) -> JobKind | None:
    path = f"{sources.__name__}.{name}.job"
    if find_spec(path) is None:
        return None
    module = importlib.import_module(path)
    return JobKind(name, module.Config, module.build)
