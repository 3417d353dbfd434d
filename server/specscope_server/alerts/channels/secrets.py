"""Secrets of channels: told from the rest, sealed in the store, or named where they are kept.

A secret field's value is sealed whole. Without a key, a channel that is made by REST can only name its
secrets: ``${env:SPECSCOPE_ALERT_…}``, or ``file:/PATH`` below a folder that the operator chose. So somebody
who may write channels cannot have other variables or files of this machine sent to a receiver.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from specscope_server.alerts.channels.contract import ChannelConfig
from specscope_server.alerts.channels.fields import REFERENCE, is_reference
from specscope_server.kit.errors import InvalidInput

SHORTEST_KEY = 32
ENV_PREFIX = "SPECSCOPE_ALERT_"
MAX_SECRET_BYTES = 16_384
_PURPOSE = b"specscope channel secrets"
HOW_TO_SET_KEY = (
    "set SPECSCOPE_SECRET_KEY (or SPECSCOPE_SECRET_KEY_FILE), e.g. to what `openssl rand -base64 32` prints"
)


class Seal:
    """Seals with the first key; opens with any, so that keys can be changed."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raises `InvalidInput` for a key that is too short to be one."""
        if any(len(key) < SHORTEST_KEY for key in keys):
            raise InvalidInput(
                f"secret_key has a key of less than {SHORTEST_KEY} characters; {HOW_TO_SET_KEY}"
            )
        self._fernet = MultiFernet([Fernet(_derived(key)) for key in keys]) if keys else None

    @property
    def has_key(self) -> bool:
        """Whether anything can be sealed."""
        return self._fernet is not None

    def close(self, channel: str, secrets: Mapping[str, Any]) -> bytes:
        """Return the secrets sealed, for this channel alone. Raises `InvalidInput` without a key."""
        if self._fernet is None:
            fields = ", ".join(sorted(secrets))
            raise InvalidInput(
                f"{fields}: there is no key to keep secrets with; {HOW_TO_SET_KEY}, or name where it is: "
                f"${{env:{ENV_PREFIX}NAME}} or file:/PATH"
            )
        return self._fernet.encrypt(msgspec.json.encode([channel, secrets]))

    def open(self, channel: str, sealed: bytes | None) -> dict[str, Any]:
        """Return the secrets. Raises `InvalidInput` when the key is gone or they are another channel's."""
        if not sealed:
            return {}
        try:
            if self._fernet is None:
                raise InvalidToken
            owner, secrets = msgspec.json.decode(self._fernet.decrypt(sealed))
        except InvalidToken:
            raise InvalidInput(
                f"the secrets of the channel {channel!r} cannot be opened with this secret_key; set the key "
                "that they were sealed with, or give them again"
            ) from None
        if owner != channel:
            raise InvalidInput(f"the secrets stored with the channel {channel!r} are those of another one")
        return dict(secrets)


def _derived(key: str) -> bytes:
    made = HKDF(SHA256(), length=32, salt=None, info=_PURPOSE).derive(key.encode())
    return base64.urlsafe_b64encode(made)


@dataclass(frozen=True, slots=True)
class References:
    """What secrets may be named by a channel: everything for the operator's file, little by REST."""

    env_prefix: str = ENV_PREFIX
    folder: Path | None = None
    """None = no files, "/" = all."""
    environment: Mapping[str, str] | None = None
    """None = that of this process."""

    def read(self, reference: str) -> str:
        """Return what is named. Raises `InvalidInput`, which never holds the secret."""
        match = REFERENCE.fullmatch(reference)
        assert match is not None, "not a reference"
        text = self._variable(match[1]) if match[1] else self._file(Path(match[2]))
        if not text:
            raise InvalidInput(f"{reference} is empty; put the secret there")
        return text

    def _variable(self, name: str) -> str:
        if not name.startswith(self.env_prefix):
            raise InvalidInput(
                f"${{env:{name}}} may not be used by a channel that is made by REST; variables for that "
                f"begin with {self.env_prefix}"
            )
        found = (os.environ if self.environment is None else self.environment).get(name)
        if found is None:
            raise InvalidInput(f"the environment variable {name} is not set; set it for the server")
        return found.strip()

    def _file(self, path: Path) -> str:
        try:
            real = path.resolve(strict=True)
            if self.folder is None or not real.is_relative_to(self.folder.resolve()):
                raise InvalidInput(
                    f"file:{path} may not be used by a channel that is made by REST; put it below "
                    "alerts_secrets_folder"
                )
            with real.open("rb") as file:
                return file.read(MAX_SECRET_BYTES).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise InvalidInput(f"file:{path} cannot be read ({reason}); name a readable text file") from None


EVERYTHING = References("", Path("/"))
"""For channels of the alerts file: who writes it runs the server."""


def secret_fields(config: type[ChannelConfig]) -> list[str]:
    """Return the names of fields that hold secrets."""
    return [name for name, field in config.model_fields.items() if _has_secret(field.annotation)]


def _has_secret(annotation: Any) -> bool:
    inner = getattr(annotation, "__args__", ())
    return annotation is SecretStr or any(_has_secret(each) for each in inner)


def split(config: ChannelConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (what may be shown, secrets): fields whose texts are all references may be shown."""
    shown: dict[str, Any] = {}
    hidden: dict[str, Any] = {}
    secret = secret_fields(type(config))
    for name in type(config).model_fields:
        value = _opened(getattr(config, name))
        texts = _texts(value) if name in secret else []
        (hidden if any(not is_reference(text) for text in texts) else shown)[name] = value
    return shown, hidden


def resolved(values: Mapping[str, Any], secret: Sequence[str], references: References) -> dict[str, Any]:
    """Return the settings with every reference in a secret field read. Raises `InvalidInput`."""

    def read(text: str) -> str:
        return references.read(text) if is_reference(text) else text

    return {name: _mapped(value, read) if name in secret else value for name, value in values.items()}


def _opened(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _opened(inner) for key, inner in value.items()}
    return [_opened(inner) for inner in value] if isinstance(value, list | tuple) else value


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts(each)]


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    return [_mapped(inner, change) for inner in value] if isinstance(value, list) else value
