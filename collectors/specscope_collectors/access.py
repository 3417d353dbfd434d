"""How servers of one table are reached: key, certificates. Keys never stand in the file itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from specscope_collectors.config import CollectorOptions, OptionsError


class Access(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that `[options]`, `[[target]]` and `[[discover]]` share."""

    api_key_env: str | None = None
    """Environment variable that holds the key which is sent to these servers, as a bearer token."""
    api_key_file: str | None = None
    """File that holds the key; it is read again when it changes."""
    tls_verify: bool | None = None
    """Whether certificates are checked."""
    ca_file: str | None = None
    """PEM file of the authority that signed their certificates."""


def apply_access(
    access: Access, options: CollectorOptions, where: str, problems: list[str]
) -> CollectorOptions:
    """Return ``options`` with what ``access`` says; what cannot be is appended to ``problems``."""
    changes: dict[str, Any] = {
        name: value for name in ("tls_verify", "ca_file") if (value := getattr(access, name)) is not None
    }
    key = read_key(access.api_key_env, access.api_key_file, where, problems)
    if key is not None:
        changes["api_key"] = key
    if not changes:
        return options
    try:
        return replace(options, **changes)
    except OptionsError as error:
        problems.append(f"{where}: {error}")
        return options


def read_key(
    variable: str | None, file: str | None, where: str, problems: list[str], prefix: str = ""
) -> str | None:
    """Return the key that the variable or the file holds; None without one or with a problem."""
    if variable is not None and file is not None:
        problems.append(
            f"{where}: both {prefix}api_key_env and {prefix}api_key_file are given; leave one of them out"
        )
        return None
    if variable is not None:
        return _of_variable(variable, f"{where}: {prefix}api_key_env", problems)
    return None if file is None else _of_file(file, f"{where}: {prefix}api_key_file", problems)


def _of_variable(variable: str, where: str, problems: list[str]) -> str | None:
    key = os.environ.get(variable, "").strip()
    if not key:
        problems.append(f"{where} = {variable!r}: this environment variable is not set; export it")
    return _sendable(key, f"{where} = {variable!r}", problems)


def _of_file(file: str, where: str, problems: list[str]) -> str | None:
    try:
        key = Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        problems.append(f"{where} = {file!r} cannot be read ({reason}); name a readable text file")
        return None
    if not key:
        problems.append(f"{where} = {file!r}: the file is empty; write the key into it")
    return _sendable(key, f"{where} = {file!r}", problems)


def _sendable(key: str, where: str, problems: list[str]) -> str | None:
    if key.isascii() and key.isprintable():
        return key or None
    problems.append(f"{where}: the key holds characters that no header can carry; check what is in it")
    return None
