"""What is known of the launch that measurements belong to, and how a scrape changes it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from specscope_collectors.engine import Told
from specscope_collectors.engines import engine_named
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.identity import Change, Evidence, Identity, digest, judge
from specscope_collectors.observations import Event, Launch

MAX_CHANGES = 50
_MAX_NAMED = 4


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The launch in force, and what tells it from others."""

    launch: Launch
    identity: Identity
    models: tuple[str, ...] = ()
    """``model_name`` labels seen with it."""
    salt: str = ""
    started: float | None = None
    """When its process started (epoch seconds), if it says so."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a scrape says about the launch."""

    change: Change
    known: Known
    event: Event | None = None


def by_info(known: Known | None, told: Told, evidence: Evidence, time_ms: int) -> Verdict:
    """Judge with what the engine says about itself."""
    seen = told.identity
    change = _judge(known, told.launch.engine, seen, evidence)
    if known is not None and change is Change.SAME:
        return Verdict(change=change, known=known)
    key, salt = _key(known, seen, change, time_ms)
    draft = msgspec.structs.replace(told.launch, key=key, time_ms=time_ms)
    launch = msgspec.structs.replace(draft, reason=_reason(known, draft, change))
    models = known.models if known and change is Change.CONFIGURATION else ()
    return _verdict(change, known, Known(launch=launch, identity=seen, models=models, salt=salt))


def by_metrics(known: Known | None, mapped: Mapped, evidence: Evidence, time_ms: int) -> Verdict:
    """Judge with the metrics alone, when the engine does not say what it is."""
    seen = _identity_of_metrics(known, mapped, time_ms)
    change = _judge(known, mapped.engine, seen, evidence)
    if known is not None and change is Change.SAME and looks_different(known, mapped):
        change = Change.CONFIGURATION
    if known is not None and change is Change.SAME:
        return Verdict(change=change, known=known)
    key, salt = _key(known, seen, change, time_ms)
    draft = Launch(
        key=key,
        time_ms=time_ms,
        engine=mapped.engine,
        engine_version=mapped.version_from_metric_set,
        version_source="metric_names",
        served_model_name=next(iter(sorted(mapped.models)), None),
        is_demo=mapped.demo,
    )
    launch = msgspec.structs.replace(draft, reason=_reason(known, draft, change))
    models = tuple(sorted(mapped.models))
    return _verdict(change, known, Known(launch=launch, identity=seen, models=models, salt=salt))


def looks_different(known: Known, mapped: Mapped) -> bool:
    """True when the metrics speak of another model, engine or process, or of the demo instead of it."""
    if mapped.engine != known.launch.engine or started_anew(known, mapped):
        return True
    other_models = bool(known.models and mapped.models) and mapped.models.isdisjoint(known.models)
    return other_models or (mapped.series > 0 and mapped.demo != known.launch.is_demo)


def started_anew(known: Known | None, mapped: Mapped) -> bool:
    """True when the process says that it started at another time than the one before said."""
    told = known.started if known else None
    return told is not None and mapped.started is not None and told != mapped.started


def with_models(known: Known, mapped: Mapped) -> Known:
    """Return ``known`` with the model names seen since (they appear one by one), and its start."""
    merged = tuple(sorted({*known.models, *mapped.models}))
    started = known.started if mapped.started is None else mapped.started
    if merged == known.models and started == known.started:
        return known
    return msgspec.structs.replace(known, models=merged, started=started)


def changes_between(old: Launch, new: Launch) -> dict[str, list[Any]]:
    """Return changed settings → [old, new], at most `MAX_CHANGES`, without what every start changes.

    Environment variables (NCCL_* and the like) are named ``env.NAME``, where both launches tell them.
    """
    if old.engine != new.engine:
        return {"engine": [old.engine, new.engine]}
    if not old.config or not new.config:
        return {}
    evidence = engine_named(new.engine).start_evidence
    names = sorted((old.config.keys() | new.config.keys()) - evidence)
    pairs = {name: [old.config.get(name), new.config.get(name)] for name in names}
    if old.environment and new.environment:
        variables = sorted(old.environment.keys() | new.environment.keys())
        pairs |= {f"env.{name}": [old.environment.get(name), new.environment.get(name)] for name in variables}
    changed = [(name, pair) for name, pair in pairs.items() if pair[0] != pair[1]]
    return dict(changed[:MAX_CHANGES])


def _judge(known: Known | None, engine: str, seen: Identity, evidence: Evidence) -> Change:
    if known is None:
        return Change.FIRST
    return Change.RESTART if known.launch.engine != engine else judge(known.identity, seen, evidence)


def _identity_of_metrics(known: Known | None, mapped: Mapped, time_ms: int) -> Identity:
    by_names = known is not None and known.identity.source == "metric_names"
    if known is not None and by_names and not looks_different(known, mapped):
        models = list(known.models)
        process = known.identity.process
        same_version = known.launch.engine_version == mapped.version_from_metric_set or not mapped.series
        if same_version:
            return known.identity
    else:
        models, process = sorted(mapped.models), digest(["first seen", time_ms])
    configuration = digest([models, mapped.version_from_metric_set, mapped.demo])
    return Identity(source="metric_names", process=process, configuration=configuration)


def _key(known: Known | None, seen: Identity, change: Change, time_ms: int) -> tuple[str, str]:
    """Return (key, salt); a restart that looks like the launch before gets a salt of its own."""
    salt = known.salt if known and change is Change.CONFIGURATION else ""
    key = seen.key(salt)
    if known is not None and change is Change.RESTART and key == known.launch.key:
        salt = str(time_ms)
        key = seen.key(salt)
    return key, salt


def _reason(known: Known | None, launch: Launch, change: Change) -> str:
    if known is None:
        return "first seen"
    changed = changes_between(known.launch, launch)
    if "engine" in changed:
        return "another engine"
    if change is Change.RESTART:
        return "restarted with another configuration" if changed else "restarted"
    if not known.launch.config and launch.config:
        return "configuration became readable"
    return "configuration changed"


def _verdict(change: Change, before: Known | None, after: Known) -> Verdict:
    launch = after.launch
    changes = changes_between(before.launch, launch) if before else {}
    named = [f"{name} {old!r} → {new!r}" for name, (old, new) in changes.items()]
    message = f"{launch.reason}: " + ", ".join(named[:_MAX_NAMED]) if named else launch.reason
    more = len(named) - _MAX_NAMED
    event = Event(
        kind=change.value,
        time_ms=launch.time_ms,
        message=message[:400] + (f" and {more} more" if more > 0 else ""),
        detail={"changes": changes} if changes else {},
    )
    return Verdict(change=change, known=after, event=event)
