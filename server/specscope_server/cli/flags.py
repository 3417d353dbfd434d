"""Command line flags made from the fields of `Settings`, so that the names cannot drift apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from specscope_server.settings import SECRETS, Settings

_BARE_TYPES = (str, int, float, bool, Path)


def flag_names() -> list[str]:
    """Return the fields that are flags: all but the secrets, which would show in lists of processes."""
    return [name for name in Settings.model_fields if name not in SECRETS]


def with_settings_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return ``command(config, **flags)`` with one flag for each setting; one that is not given is None."""
    config = inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None, typer.Option(help="TOML file with settings (default: specscope.toml).")
        ],
    )
    parameters = [config, *(_parameter(name, Settings.model_fields[name]) for name in flag_names())]

    def run(**given: Any) -> None:
        command(given.pop("config"), **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = command.__doc__
    return run


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind = _bare_type(field.annotation)
    flag = "--" + name.replace("_", "-")
    declared = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    option = typer.Option(declared, help=_help(field), show_default=False)
    annotation: Any = Annotated[list[str] | None if kind is list else kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _bare_type(annotation: Any) -> Any:
    """Return what typer should read; values are checked by `Settings`: one message whatever the source."""
    if get_origin(annotation) is list:
        return list
    if get_origin(annotation) is Literal:
        return str
    for candidate in (annotation, *get_args(annotation)):
        if candidate in _BARE_TYPES:
            # Numbers are read by `Settings` too: one message for a wrong number, whatever its source.
            return candidate if candidate in (bool, Path) else str
    raise TypeError(f"no flag can be made for a setting of type {annotation!r}")


def _help(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    shown = (
        "none" if default in (None, []) else str(default).lower() if isinstance(default, bool) else default
    )
    return f"{field.description} [default: {shown}]"
