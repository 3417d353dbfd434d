"""The settings page, from the fields of `Settings`."""

from __future__ import annotations

from typing import Any

from docs_markdown import code, page, table
from pydantic.fields import FieldInfo

from specscope_server.settings import DEFAULT_FILE, SECRETS, Settings

INTRODUCTION = f"""
Settings of `specscope serve`. Each has one name: in capitals with `SPECSCOPE_` in front it is an environment
variable, with `--` in front and dashes it is a flag, as it stands it is a key of the TOML file. What wins,
from strongest: flag, environment variable, secret's file, TOML file, default.

The TOML file is `--config FILE`, else `SPECSCOPE_CONFIG`, else `{DEFAULT_FILE}` in the working directory if
it exists. An unknown name in it is an error.

Secrets ({" and ".join(code(name) for name in SECRETS)}) are never flags, because flags show up in lists of
processes. Set the variable, or put the secret into a file and name that file in a variable ending in `_FILE`.
"""


def settings_page() -> str:
    """Return the page."""
    overview = table(
        ["setting", "default", "meaning"],
        [[f"[`{name}`](#{name})", default_of(field), str(field.description)] for name, field in _fields()],
    )
    return page("Settings", INTRODUCTION, [overview, *(_section(name, field) for name, field in _fields())])


def _fields() -> list[tuple[str, FieldInfo]]:
    return list(Settings.model_fields.items())


def _section(name: str, field: FieldInfo) -> str:
    variable = f"SPECSCOPE_{name.upper()}"
    rows = [["environment", code(variable)]]
    if name in SECRETS:
        rows += [["file that holds it", code(f"{variable}_FILE")], ["flag", "none: it is a secret"]]
    else:
        rows.append(["flag", code(flag_of(name, field))])
    rows.append(["default", default_of(field)])
    limits = limits_of(field)
    if limits:
        rows.append(["limits", limits])
    return f"## `{name}`\n\n{field.description}\n\n" + table(["", ""], rows)


def flag_of(name: str, field: FieldInfo) -> str:
    """Return the command line flag(s) of a field."""
    flag = "--" + name.replace("_", "-")
    return f"{flag} / --no-{flag[2:]}" if field.annotation is bool else flag


def default_of(field: FieldInfo) -> str:
    """Return the default as code; unset and empty in words."""
    value: Any = field.get_default(call_default_factory=True)
    if value is None:
        return "unset"
    if value == []:
        return "none"
    return code(str(value).lower() if isinstance(value, bool) else value)


def limits_of(field: FieldInfo) -> str:
    """Return the limits of a number in words, or ''."""
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    found = []
    for limit in field.metadata:
        for name, word in words.items():
            value = getattr(limit, name, None)
            if value is not None:
                found.append(f"{word} {value}")
    return ", ".join(found)
