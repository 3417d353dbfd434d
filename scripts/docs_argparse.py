"""Commands that are built with argparse, in the form in which typer's are described."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any


def as_command(parser: argparse.ArgumentParser) -> Any:
    """Return what the command page needs of a parser: help, options and subcommands."""
    commands: dict[str, Any] = {}
    params = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = {name: as_command(child) for name, child in action.choices.items()}
        elif not isinstance(action, argparse._HelpAction):
            params.append(_param(action))
    return SimpleNamespace(help=parser.description or "", commands=commands, params=params)


def _param(action: argparse.Action) -> Any:
    choices = f" One of {', '.join(f'`{choice}`' for choice in action.choices)}." if action.choices else ""
    return SimpleNamespace(
        name=action.dest,
        param_type_name="option" if action.option_strings else "argument",
        opts=action.option_strings,
        secondary_opts=[],
        multiple=action.nargs in ("*", "+"),
        help=f"{action.help or ''}{choices}".strip(),
        default=action.default,
        required=action.required,
        hidden=action.help == argparse.SUPPRESS,
    )
