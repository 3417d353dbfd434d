"""The kinds of conditions, found by convention: ``conditions/<kind>.py: Condition``."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Annotated, Any, Union

from pydantic import Field

from specscope_server.alerts.rules import conditions
from specscope_server.alerts.rules.condition import ConditionBase


@cache
def kinds() -> dict[str, ModuleType]:
    """Return name → module, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(conditions.__path__))
    return {name: importlib.import_module(f"{conditions.__name__}.{name}") for name in names}


def _models() -> tuple[type[ConditionBase], ...]:
    return tuple(module.Condition for module in kinds().values())


AnyCondition: Any = Annotated[Union[_models()], Field(discriminator="kind")]  # noqa: UP007
for _model in _models():
    _model.model_rebuild(_types_namespace={"AnyCondition": AnyCondition})
