"""Manifests beside a dump: `data_config.json` in its forms, and the configuration of a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.texts import whole
from specscope_collectors.references.walking import beginning_of

NAME = "data_config.json"
MAX_BYTES = 4 << 20
MAX_LAYERS = 4_096


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says; None or () = nothing."""

    source: str
    hidden_size: int | None = None
    layers: int | None = None
    boundaries: tuple[int, ...] = ()
    layer_ids: tuple[int, ...] = ()
    tool: str = ""
    model: str = ""


def manifest_of(root: Path) -> Manifest | None:
    """Return what `data_config.json` of the dump says; an interrupted writer has left none."""
    folder = root if root.is_dir() else root.parent
    for place in (folder, folder.parent):
        path = place / NAME
        if path.is_file():
            return read_manifest(path)
    return None


def read_manifest(path: Path) -> Manifest:
    """Return what a manifest or the configuration of a draft says. Raises DumpError."""
    try:
        content = beginning_of(path, MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DumpError(f"{path} has over {MAX_BYTES} bytes: no manifest")
        found = msgspec.json.decode(content, type=dict[str, Any])
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DumpError(f"{path} is no JSON object; mend it, or move it away to go on without it") from None
    manifest = _manifest(whole(path.name), found)
    wrong = wrong_boundaries(manifest.boundaries, manifest.layers)
    if wrong:
        raise DumpError(f"{path}: boundaries {wrong}; mend it, or move it away to go on without it")
    return manifest


def wrong_boundaries(boundaries: Sequence[int], layers: int | None = None) -> str:
    """Say why these cannot be boundaries of one model; empty = they can."""
    for boundary in boundaries:
        if boundary < 0 or (layers is not None and boundary > layers):
            most = f" to {layers}" if layers is not None else " on"
            return f"{_list(boundaries)} cannot be: {boundary} is none, they go from 0{most}"
        if list(boundaries).count(boundary) > 1:
            return f"{_list(boundaries)} cannot be: {boundary} stands there twice"
    return ""


def _list(numbers: Sequence[int]) -> str:
    return f"{','.join(map(str, numbers[:20]))}{',…' if len(numbers) > 20 else ''}"


def _manifest(source: str, found: Mapping[str, Any]) -> Manifest:
    model, states = _mapping(found.get("model")), _mapping(found.get("hidden_states"))
    eagle = _mapping(found.get("eagle_config"))
    ids = (
        _numbers(states.get("layer_ids"))
        or _numbers(found.get("eagle_aux_hidden_state_layer_ids"))
        or _numbers(eagle.get("eagle_aux_hidden_state_layer_ids"))
    )
    version = found.get("speculators_version")
    return Manifest(
        source=source,
        hidden_size=_size(model.get("hidden_size")) or _size(found.get("hidden_size")),
        layers=_size(found.get("num_hidden_layers")) if source == NAME else None,
        boundaries=_numbers(found.get("boundaries")),
        layer_ids=ids,
        tool=f"speculators {version[:40]}" if isinstance(version, str) and version else "",
        model=str(model.get("target_model_path") or found.get("target_model_path") or "")[:300],
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _size(value: Any) -> int | None:
    return value if type(value) is int and 0 < value <= 1 << 20 else None


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_LAYERS:
        return ()
    if any(type(number) is not int or not -1 <= number < MAX_LAYERS for number in value):
        return ()
    return tuple(value)
