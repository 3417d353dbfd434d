"""What the endpoints about alerts take and return."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from specscope_server.alerts.states.machine import State


class AlertItem(BaseModel):
    """One alert: a rule and a label set, as it stands now or stood when it was over."""

    alert_id: str | None = Field(description="Of this fire; null while it is pending")
    fingerprint: str = Field(description="Of rule and labels: the same for each fire")
    rule: str
    title: str
    severity: str
    state: State
    labels: dict[str, str]
    since: str = Field(description="Since when it is in this state")
    fired: str | None
    resolved: str | None
    reason: str = Field(description="What was compared with what, in words")
    cause: str = Field(description="Why nothing is known now (`idle`, `no_data` …); empty when something is")
    value: float | None
    lower: float | None
    upper: float | None
    n: float | None
    unit: str
    n_unit: str
    acked_by: str | None
    acked: str | None
    acked_until: str | None = Field(
        None, description="After which it is repeated again; null: taken until it is over, or by nobody"
    )
    muted_by: str = Field(description="Why nobody is told: `silence:ID`, `inhibited:RULE`, `idle`; or empty")
    page: str = Field(description="Path of the page that shows it, at the right time")
    is_demo: bool
    is_heartbeat: bool = Field(False, description="It fires always, to show that alerting works: no fault")


class AlertList(BaseModel):
    """Alerts that are something else than normal, the worst first."""

    alerts: list[AlertItem]
    counts: dict[str, int] = Field(description="State → how many, whatever was asked for")
    health: str = Field(description="`ok`, or what is wrong with the evaluation of rules")


class TransitionItem(BaseModel):
    """One change of state."""

    id: int
    at: str
    alert_id: str | None
    fingerprint: str
    rule: str
    severity: str
    labels: dict[str, str]
    from_state: str
    to_state: str
    reason: str
    notified: str | None = Field(description="When a channel was first told; null: nobody was")


class History(BaseModel):
    """Changes of state, newest first."""

    transitions: list[TransitionItem]
    next_cursor: str | None


class TimelineItem(BaseModel):
    """Something that happened to one alert."""

    at: str
    kind: Literal["state", "delivery", "person"]
    text: str
    status: str = Field(description="The new state, the delivery's status, or what was done")
    delivery_id: int | None = None


class AlertDetail(BaseModel):
    """One alert with all that is known of it."""

    alert: AlertItem
    card: dict[str, Any] | None = Field(description="As channels are told it; null while it is pending")
    evidence: dict[str, Any] = Field(description="What the newest reading rests on")
    timeline: list[TimelineItem] = Field(description="Oldest first")


class Acknowledgement(BaseModel):
    """Somebody looks after it: it is not repeated."""

    model_config = ConfigDict(extra="forbid")

    owner: str = Field("", max_length=100, description="Who; by default the name of the token")
    for_: str | None = Field(
        None,
        alias="for",
        max_length=20,
        examples=["2h"],
        description="`30m`, `2h`, at most 30d: after that it is repeated again; by default until it is over",
    )
    note: str = Field("", max_length=1_000)


class AuditItem(BaseModel):
    """One change of what alerts do."""

    id: int
    at: str
    actor: str
    action: str
    target: str
    before: Any
    after: Any


class AuditList(BaseModel):
    """Changes, newest first."""

    entries: list[AuditItem]
    next_cursor: str | None
