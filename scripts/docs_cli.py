"""The command page, from the dispatcher's table and each command's own options."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import Any
from unittest.mock import patch

import typer
from docs_argparse import as_command
from docs_markdown import code, page, table

from specscope.__main__ import COMMANDS

INTRODUCTION = """
`specscope COMMAND --help` says the same on the terminal. A command whose extra is not installed says which
one to install, and exits with status 3.
"""


def cli_page() -> str:
    """Return the page."""
    rows = [
        [
            f"[`specscope {name}`](#specscope-{name})",
            what,
            code(f"specscope[{extra}]" if extra else "specscope"),
        ]
        for name, (_, extra, what) in COMMANDS.items()
    ]
    sections = [_section(name, command) for name, command in all_commands()]
    return page("Commands", INTRODUCTION, [table(["command", "what it does", "needs"], rows), *sections])


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield ("serve", command), ("db", group), ("db upgrade", command), … in the order of the dispatcher.

    Commands are click objects of typer's; whose click that is differs between versions of typer, so they
    are told apart by what they have and not by class.
    """
    for name, (module_name, _, _) in COMMANDS.items():
        built = _built_by(module_name)
        command = typer.main.get_command(built) if isinstance(built, typer.Typer) else as_command(built)
        yield name, command
        for sub, found in getattr(command, "commands", {}).items():
            yield f"{name} {sub}", found


def _built_by(module_name: str) -> Any:
    """Return the application that the module's `main` builds, caught at the moment when it would run."""
    caught: list[typer.Typer | ArgumentParser] = []

    def catch(app: typer.Typer | ArgumentParser, *_: object, **__: object) -> None:
        caught.append(app)
        raise SystemExit(0)

    with (
        patch.object(typer.Typer, "__call__", catch),
        patch.object(ArgumentParser, "parse_args", catch),
        suppress(SystemExit),
    ):
        importlib.import_module(module_name).main([])
    return caught[0]


def _section(name: str, command: Any) -> str:
    mark = "###" if " " in name else "##"
    parts = [f"{mark} `specscope {name}`", (command.help or "").replace("\b\n", "").strip()]
    subcommands = getattr(command, "commands", {})
    if subcommands:
        parts.append("Subcommands: " + ", ".join(code(sub) for sub in subcommands) + ".")
    shown = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    arguments = [_argument(p) for p in shown if p.param_type_name == "argument"]
    options = [_option(p) for p in shown if p.param_type_name == "option"]
    if arguments:
        parts.append(table(["argument", "meaning"], arguments))
    if options:
        parts.append(table(["option", "default", "meaning"], options))
    return "\n\n".join(part for part in parts if part)


def _argument(argument: Any) -> list[str]:
    name = code(argument.name.upper()) + ("" if argument.required else " (optional)")
    return [name, getattr(argument, "help", "") or ""]


def _option(option: Any) -> list[str]:
    names = ", ".join(code(name) for name in (*option.opts, *option.secondary_opts))
    repeat = " (repeatable)" if option.multiple else ""
    words, _, default = (option.help or "").strip().removesuffix("]").partition(" [default: ")
    return [names + repeat, code(default) if default else _default(option), words + _choices(option)]


def _default(option: Any) -> str:
    value = option.default
    if option.required:
        return "required"
    if callable(value) or value in (None, (), [], ""):
        return ""
    if isinstance(value, Enum):
        value = value.value
    return code(str(value).lower() if isinstance(value, bool) else value)


def _choices(option: Any) -> str:
    if not isinstance(option.default, Enum):
        return ""
    return " One of " + ", ".join(code(choice.value) for choice in type(option.default)) + "."
