"""Which launch a line belongs to: a new dump of arguments, or a second "fired up", begins another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from specscope_collectors.identity import digest
from specscope_collectors.launches import changes_between
from specscope_collectors.observations import Event, Launch
from specscope_collectors.redaction import redact_text
from specscope_collectors.sources.sglang_info import ServerInfo, to_launch
from specscope_collectors.sources.sglang_log.levels import Expected
from specscope_collectors.sources.sglang_log.versions import SOURCE, version_range

_MAX_NAMED = 4


@dataclass(slots=True)
class Launches:
    """The launch in force while a log is read from its beginning."""

    server: str
    fingerprint: str
    """Of the log: names the launch of lines before the first dump."""
    current: Launch | None = None
    is_ready: bool = False
    has_lines: bool = False
    forms: set[str] = field(default_factory=set)
    """Of its dump and Decode lines: they bound its version."""

    @property
    def expected(self) -> Expected:
        """What the launch in force allows."""
        if self.current is None:
            return Expected()
        speculative = self.current.speculative
        return Expected(draft_tokens=speculative.num_draft_tokens, is_adaptive=bool(speculative.adaptive))

    def model_labels(self) -> dict[str, str]:
        """Return the label under which ``/metrics`` names the model; {} while it is not known."""
        name = self.current and (self.current.served_model_name or self.current.model)
        return {"model_name": name} if name else {}

    def by_dump(self, config: dict[str, Any], form: str, time_ms: int) -> Launch | None:
        """Begin the launch that a dump tells of; None when it is the one in force (a line written twice)."""
        key = digest(["sglang_log", self.server, config, time_ms])[:32]
        if self.current is not None and self.current.key == key:
            return None
        info = ServerInfo(version=None, config=config, states=(), variables={}, is_demo=False)
        return self._begin(to_launch(info, key=key, time_ms=time_ms), form)

    def by_ready(self, time_ms: int) -> Launch | None:
        """Note that the server is up: a restart, if it was up already or has measured before."""
        again = self.is_ready or (self.current is not None and not self.current.config and self.has_lines)
        begun = None
        if again and self.current is not None:
            key = digest(["sglang_log", self.current.key, time_ms])[:32]
            begun = self._begin(msgspec.structs.replace(self.current, key=key, time_ms=time_ms))
        self.is_ready = True
        return begun

    def by_line(self, time_ms: int) -> Launch | None:
        """Begin the unknown launch of a line before any dump."""
        self.has_lines = True
        if self.current is not None:
            return None
        key = digest(["sglang_log", self.server, self.fingerprint])[:32]
        begun = self._begin(Launch(key=key, time_ms=time_ms, engine="sglang"))
        self.has_lines = True
        return begun

    def written_as(self, form: str) -> Launch | None:
        """Learn of the version from the form of a line; return the launch if that says more of it."""
        if not form or form in self.forms or self.current is None:
            return None
        self.forms.add(form)
        known = _versioned(self.current, self.forms)
        if known == self.current:
            return None
        self.current = known
        return known

    def _begin(self, launch: Launch, *forms: str) -> Launch:
        before, self.is_ready, self.has_lines = self.current, False, False
        self.forms = set(forms)
        self.current = _versioned(msgspec.structs.replace(launch, reason=_reason(before, launch)), self.forms)
        return self.current


def _versioned(launch: Launch, forms: set[str]) -> Launch:
    version = version_range(forms)
    return msgspec.structs.replace(
        launch, engine_version=version, version_source=None if version is None else SOURCE
    )


def _reason(before: Launch | None, launch: Launch) -> str:
    if before is None:
        return "first seen"
    return "restarted with another configuration" if changes_between(before, launch) else "restarted"


def begin_event(before: Launch | None, launch: Launch) -> Event:
    """Return the event that marks the beginning of a launch."""
    changes = changes_between(before, launch) if before else {}
    named = [f"{name} {old!r} → {new!r}" for name, (old, new) in changes.items()]
    message = ": ".join(filter(None, (f"{launch.reason} (log)", ", ".join(named[:_MAX_NAMED]))))
    return Event(
        kind="restart" if before else "launch",
        time_ms=launch.time_ms,
        message=redact_text(message)[:400],
        detail={"changes": changes} if changes else {},
    )
