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


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind's own fields: ``properties`` and ``required``."""
    schema: dict[str, Any] = kinds()[kind].Condition.model_json_schema()
    reference = schema.get("$ref", "")  # of a kind that holds conditions
    return schema["$defs"][reference.rpartition("/")[2]] if reference else schema


def _models() -> tuple[type[ConditionBase], ...]:
    return tuple(module.Condition for module in kinds().values())


AnyCondition: Any = Annotated[Union[_models()], Field(discriminator="kind")]  # noqa: UP007
for _model in _models():
    _model.model_rebuild(_types_namespace={"AnyCondition": AnyCondition})
