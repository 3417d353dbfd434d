"""PromQL selectors from names and values that may hold anything."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

_MATCHER = re.compile(r'\s*[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*')
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_PLAIN = re.compile(r"[a-zA-Z0-9_:]+")


def check_matcher(text: str) -> str:
    """Return one label matcher; raise ValueError for anything else, which could leave the selector."""
    if not _MATCHER.fullmatch(text):
        raise ValueError(f'{text[:60]!r} is no label matcher; write it like cluster="a" or job=~"sglang.*"')
    return text.strip()


def check_label_name(text: str) -> str:
    """Return the name of a label; raise ValueError."""
    if not _LABEL_NAME.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is no name of a label; write it like instance")
    return text


def equals(label: str, value: str) -> str:
    """Return the matcher of one value; JSON's escapes are among those that PromQL reads."""
    return f"{check_label_name(label)}={json.dumps(value, ensure_ascii=False)}"


def named(names: Collection[str]) -> str:
    """Return the matcher of metric names, short: names that share a prefix up to ``:`` or ``_`` share it."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        if not _PLAIN.fullmatch(name):
            raise ValueError(f"{name[:60]!r} is no plain name of a metric")
        head = re.match(r"[a-z]+[:_]", name)
        groups.setdefault(head[0] if head else "", []).append(name[head.end() if head else 0 :])
    parts = [f"{head}(?:{'|'.join(tails)})" for head, tails in groups.items()]
    return f'__name__=~"{"|".join(parts)}"'


def selector(*matchers: str) -> str:
    """Return ``{a="b",…}``."""
    return "{" + ",".join(matchers) + "}"
