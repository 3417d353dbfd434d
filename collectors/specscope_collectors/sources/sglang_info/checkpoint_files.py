"""What `config.json` of a checkpoint says of layers, where the collector's host has that file.

SGLang shows neither the class of the target nor the layer ids of the draft in `/server_info`, and both
decide what the draft sees. Where engine and collector share a disk, or a cache of the hub, the file is read:
a few fields of known types, and nothing else of it is kept.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

NAME = "config.json"
MAX_BYTES = 4 << 20
MAX_TEXT, MAX_CLASSES, MAX_IDS, MAX_LAYER = 100, 8, 64, 4_096
IDS = "eagle_aux_hidden_state_layer_ids"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{7,64}", re.ASCII)


def facts_of(path: str | None) -> dict[str, Any]:
    """Return what the checkpoint at a path, or of a name of the hub, says; {}: its file is not here."""
    for place in _places(path or ""):
        found = _read(place)
        if found is not None:
            return {"source": str(place)[:500], **facts(found)}
    return {}


def facts(config: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are used, of a configuration that may be hostile."""
    text, eagle = _mapping(config.get("text_config")), _mapping(config.get("eagle_config"))
    found = {
        "architectures": classes_of(config.get("architectures")),
        "num_hidden_layers": _number(config.get("num_hidden_layers"))
        or _number(text.get("num_hidden_layers")),
        "hidden_size": _number(config.get("hidden_size")) or _number(text.get("hidden_size")),
        IDS: _ids(eagle.get(IDS)) or _ids(config.get(IDS)),
    }
    return {key: value for key, value in found.items() if value}


def classes_of(value: Any) -> list[str]:
    """Return the names of classes, bounded."""
    listed = value if isinstance(value, list) else []
    return [name[:MAX_TEXT] for name in listed[:MAX_CLASSES] if isinstance(name, str) and name]


def _places(path: str) -> Iterator[Path]:
    if path.startswith("/"):
        yield Path(path, NAME)
    elif _HUB_NAME.fullmatch(path):
        yield from _hub_places(path)


def _hub_places(name: str) -> Iterator[Path]:
    """Yield where the hub's cache would have it: of the revision that `main` was, as SGLang takes."""
    home = os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub"))
    folder = cache / f"models--{name.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text()[:64].strip()
    except (OSError, UnicodeDecodeError):
        return
    if _HASH.fullmatch(revision):
        yield folder / "snapshots" / revision / NAME


def _read(place: Path) -> dict[str, Any] | None:
    try:
        if not stat.S_ISREG(place.stat().st_mode):
            return None
        with place.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            return None
        return msgspec.json.decode(content, type=dict[str, Any])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 < value <= 1 << 20 else None


def _ids(value: Any) -> list[int] | None:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_IDS:
        return None
    return value if all(type(each) is int and abs(each) <= MAX_LAYER for each in value) else None
