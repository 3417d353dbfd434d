"""What the endpoints about silences take and return."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from specscope_server.alerts.silences.matchers import MAX_MATCHERS, Matcher


class SilenceState(StrEnum):
    """Where a silence stands."""

    ACTIVE = "active"
    PENDING = "pending"
    """It begins later."""
    EXPIRED = "expired"


class SilenceBody(BaseModel):
    """A silence as somebody wants it."""

    model_config = ConfigDict(extra="forbid")

    matchers: list[Matcher] = Field(min_length=1, max_length=MAX_MATCHERS, description="All must hold")
    reason: str = Field(min_length=1, max_length=1_000, examples=["new draft is being rolled out"])
    owner: str = Field("", max_length=100, description="Who answers for it; by default the name of the token")
    starts: str = Field("now", max_length=60, description="Time as everywhere")
    ends: str | None = Field(None, max_length=60, description="Time as everywhere; or give `length`")
    length: str | None = Field(None, max_length=20, description="`30m`, `2h`, `3d`; or give `ends`")


class SilenceItem(BaseModel):
    """One silence."""

    id: int
    state: SilenceState
    matchers: list[Matcher]
    text: str = Field(description="The matchers as people write them")
    reason: str
    owner: str
    starts: str
    ends: str
    created: str
    expired_by: str | None = Field(description="Who ended it before its time")
    alerts: int = Field(description="Alerts that it mutes now")
    matches: int = Field(description="Alerts that fire now and match, whether it has begun or not")
    warning: str = Field(description="What may not be meant: it matches nothing that fires, or everything")


class SilenceQuestion(BaseModel):
    """What a silence would match."""

    model_config = ConfigDict(extra="forbid")

    matchers: list[Matcher] = Field(min_length=1, max_length=MAX_MATCHERS, description="All must hold")


class MatchedItem(BaseModel):
    """One series of a rule that a silence would match."""

    alert_id: str | None = Field(description="Of its fire, if it fires")
    fingerprint: str
    rule: str
    title: str
    severity: str
    state: str
    labels: dict[str, str]


class SilencePreview(BaseModel):
    """What a silence would match now, if it were made."""

    matches: int = Field(description="Alerts that fire now and match: these it would mute")
    known: int = Field(description="Series that do not fire and match: of their next fires nobody is told")
    warning: str = Field(description="What may not be meant: it matches nothing that fires, or everything")
    alerts: list[MatchedItem] = Field(description="Those that fire first; at most 100")


class SilenceList(BaseModel):
    """Silences, those that end last first."""

    silences: list[SilenceItem]
