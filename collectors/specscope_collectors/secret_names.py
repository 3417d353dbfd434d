"""Which names hold secrets."""

from __future__ import annotations

import re
from typing import Any

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[A-Za-z0-9]+")

_ALWAYS = frozenset({
    "password", "passwords", "passwd", "passphrase", "pwd", "secret", "secrets", "credential",
    "credentials", "authorization", "apikey", "apikeys", "cookie", "cookies", "bearer", "pat",
})  # fmt: skip
_BEFORE_KEY = frozenset({
    "api", "access", "private", "secret", "admin", "auth", "master", "encryption", "encrypt", "signing",
    "signature", "account", "watermark", "license", "ssh", "client", "service", "shared", "openai",
    "anthropic", "azure", "google", "gcp", "ngc", "nvidia", "wandb", "hf", "huggingface", "storage",
    "subscription", "deploy",
})  # fmt: skip
_BEFORE_TOKENS = frozenset(
    {"api", "access", "auth", "admin", "bearer", "refresh", "session", "hf", "secret", "id"}
)
_VOCABULARY = frozenset({
    "pad", "eos", "bos", "unk", "sep", "cls", "mask", "stop", "start", "end", "image", "audio", "video",
    "special", "draft", "bonus", "think", "tool", "begin", "noise", "hot", "extra", "next", "first", "last",
    "per", "accept", "padding", "media", "placeholder", "vision", "speech", "new", "reasoning", "separator",
    "delimiter", "output", "input", "prompt", "kv",
})  # fmt: skip
_LOCATION = frozenset({
    "path", "file", "dir", "folder", "name", "url", "uri", "header", "type", "class", "id", "length", "len",
    "size", "count", "num", "map", "mode", "interval", "ratio", "threshold",
})  # fmt: skip
_BEFORE_PASS = frozenset({
    "db", "database", "user", "admin", "root", "redis", "mysql", "pg", "postgres", "smtp", "mail", "proxy",
    "auth",
})  # fmt: skip
_AWS_PUBLIC = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION"})


def is_secret_name(name: str, value: Any = "") -> bool:
    """Return whether ``value`` under ``name`` is a secret. Absent values (None, booleans, "") hold none."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    if name.upper().startswith("AWS_"):
        return name.upper() not in _AWS_PUBLIC
    words = [word.lower() for word in _WORD.findall(_CAMEL.sub("_", name))]
    while len(words) > 1 and (len(words[-1]) == 1 or words[-1].isdigit()):
        words.pop()  # watermark_key_b, TOKEN_2
    if not words:
        return False
    return _is_always_secret(words) or _is_key(words) or _is_token(words, value)


def _is_always_secret(words: list[str]) -> bool:
    if words[-1].endswith(("password", "passwd")) or words[-2:] == ["connection", "string"]:
        return True  # PGPASSWORD
    if words[-1] == "pass" and len(words) > 1:
        return words[-2] in _BEFORE_PASS
    return not _ALWAYS.isdisjoint(words) and words[-1] not in _LOCATION


def _is_key(words: list[str]) -> bool:
    return len(words) > 1 and words[-1] in ("key", "keys") and words[-2] in _BEFORE_KEY


def _is_token(words: list[str], value: Any) -> bool:
    """``hf_token`` yes; ``eos_token``, ``max_total_tokens`` and ``token_capacity`` no."""
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "tokens":
        return before in _BEFORE_TOKENS or (isinstance(value, str) and not before and not _is_number(value))
    return (
        words[-1] in ("token", "jwt") and before not in _VOCABULARY and isinstance(value, str | dict | list)
    )


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+\d.eE, ]+", text) is not None
