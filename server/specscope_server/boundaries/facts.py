"""What is known of a launch's layers: from its recorded configuration, and from what the probe read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.versions import version_text
from specscope_server.models import Event, Launch

CAPTURE = "state_capture"
MODEL, DRAFT = "specscope_model", "specscope_draft"
DEMO_MODEL, DEMO_DRAFT = "speculative_demo_model_config", "speculative_demo_draft_config"
IDS = "eagle_aux_hidden_state_layer_ids"
MOST_EVENTS = 50
MAX_IDS, MAX_ID = 64, 4_096
MAX_NAME = 100

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Captured:
    """What the probe read from the running model."""

    layers: Ids | None
    boundaries: Ids | None
    draft_ids: Ids | None
    rule: str
    width: int | None
    hidden_size: int | None
    model_class: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """Of one launch."""

    launch: Launch
    version: str | None
    model_class: str | None
    layers: int | None
    ids: Ids | None
    """Of the draft; None: not known, or none are named (``names_none``)."""
    ids_source: str
    names_none: bool
    """The draft's configuration was read and names no ids."""
    has_graphs: bool | None
    """Whether verification runs in graphs; None: not known."""
    captured: Captured | None

    @property
    def is_eagle3(self) -> bool:
        """Whether it drafts from auxiliary states."""
        return "EAGLE3" in (self.launch.algorithm or "").upper().replace("-", "").replace("_", "")


def facts_of(session: Session, launch: Launch) -> LaunchFacts:
    """Return what is known of a launch."""
    config = _mapping(orjson.loads(launch.config))
    captured = captured_of(session, launch)
    model = {**_mapping(config.get(DEMO_MODEL)), **_mapping(config.get(MODEL))}
    draft = _mapping(config.get(DRAFT)) or _mapping(config.get(DEMO_DRAFT))
    ids, source = _draft_ids(draft, captured)
    classes = model.get("architectures")
    named = classes[0] if isinstance(classes, list) and classes else None
    return LaunchFacts(
        launch=launch,
        version=version_text(launch.engine_version, launch.version_source)
        or (captured.version if captured else None),
        model_class=_text(named) or (captured.model_class if captured else None),
        layers=_number(model.get("num_hidden_layers")),
        ids=ids,
        ids_source=source,
        names_none=bool(draft) and ids is None,
        has_graphs=_graphs(config),
        captured=captured,
    )


def _draft_ids(draft: dict[str, Any], captured: Captured | None) -> tuple[Ids | None, str]:
    ids = ids_of(draft.get(IDS)) or ids_of(_mapping(draft.get("eagle_config")).get(IDS))
    if ids is not None:
        where = _text(draft.get("source"))
        return ids, f"{where} (as the collector's host has it)" if where else "configuration of the draft"
    if captured is not None and captured.draft_ids is not None:
        return captured.draft_ids, "configuration of the draft, as the probe read it in the engine"
    return None, ""


def _graphs(config: dict[str, Any]) -> bool | None:
    found = config.get("disable_cuda_graph")
    return not found if isinstance(found, bool) else None


def captured_of(session: Session, launch: Launch) -> Captured | None:
    """Return what the probe read last of a launch; calibrations are left out, as they read every layer."""
    query = (
        select(Event.detail)
        .where(Event.server_id == launch.server_id, Event.launch_id == launch.id, Event.kind == CAPTURE)
        .order_by(Event.time_ms.desc(), Event.id.desc())
        .limit(MOST_EVENTS)
    )
    for text in session.scalars(query):
        found = _captured(text)
        if found is not None:
            return found
    return None


def _captured(text: str) -> Captured | None:
    try:
        detail = _mapping(msgspec.json.decode(text))
    except msgspec.MsgspecError:
        return None
    capture = _mapping(detail.get("capture"))
    if not capture or capture.get("is_calibration"):
        return None
    return Captured(
        layers=ids_of(capture.get("layers")), boundaries=ids_of(capture.get("boundaries")),
        draft_ids=ids_of(capture.get("draft_layers")), rule=_text(capture.get("rule")) or "",
        width=_number(capture.get("width")), hidden_size=_number(capture.get("hidden_size")),
        model_class=_text(detail.get("model_class")), version=_text(detail.get("engine_version")),
    )  # fmt: skip


def ids_of(value: Any) -> Ids | None:
    """Return a list of layer ids; None for anything else."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_IDS:
        return None
    return tuple(value) if all(type(each) is int and abs(each) <= MAX_ID for each in value) else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value[:MAX_NAME] if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 < value <= 1 << 24 else None
