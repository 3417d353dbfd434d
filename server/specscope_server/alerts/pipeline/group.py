"""Which channels are told of an alert, and together with which others (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256

from pydantic import BaseModel, ConfigDict, Field

from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.rules.condition import Pattern
from specscope_server.alerts.rules.schema import LabelName, Wait

LONGEST_KEY = 300


class Route(BaseModel):
    """Who is told of which alerts, and how often."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: dict[LabelName, Pattern] = Field(
        default_factory=dict, max_length=20,
        description="Labels of the alerts (`rule`, `severity`, `category`, `server`, `model` too); `*` and "
        "`?` as in file names; none = all",
        examples=[{"severity": "critical"}],
    )  # fmt: skip
    channels: list[str] | None = Field(
        None, max_length=50, description="Names of channels; none given = every channel"
    )
    group_by: list[LabelName] = Field(
        default_factory=lambda: ["server", "model"], max_length=20,
        description="Alerts that have these labels alike are told of together",
    )  # fmt: skip
    group_wait: Wait = Field(30_000, description="How long the first alert of a group waits for others")
    group_interval: Wait = Field(300_000, description="Least time between two notifications of a group")
    repeat_interval: Wait = Field(14_400_000, description="After which it is said again that it still fires")
    go_on: bool = Field(
        False, alias="continue", description="Later routes are asked too; else the first that matches decides"
    )

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the route is about an alert with these labels."""
        return all(fnmatchcase(labels.get(name, ""), pattern) for name, pattern in self.match.items())


EVERYTHING = Route.model_validate({})
"""What holds without routes, and for an alert that no route takes: nothing falls through."""


@dataclass(slots=True)
class Group:
    """Alerts that one channel is told of together."""

    channel: str
    key: str
    labels: dict[str, str]
    route: Route
    alerts: list[Alert] = field(default_factory=list)


def grouped(
    alerts: Sequence[Alert], routes: Sequence[Route], channels: Collection[str]
) -> dict[tuple[str, str], Group]:
    """Return (channel, key) → group. ``channels``: names of those that can be told now."""
    groups: dict[tuple[str, str], Group] = {}
    for alert in alerts:
        for route in routes_of(alert.labels, routes):
            labels = {name: alert.labels[name] for name in route.group_by if name in alert.labels}
            for channel in told_by(route, channels):
                key = key_of(labels)
                group = groups.setdefault((channel, key), Group(channel, key, labels, route))
                if all(member.fingerprint != alert.fingerprint for member in group.alerts[-1:]):
                    group.alerts.append(alert)
    return groups


def routes_of(labels: Mapping[str, str], routes: Sequence[Route]) -> list[Route]:
    """Return the routes that an alert takes, at least one."""
    taken = []
    for route in routes:
        if route.takes(labels):
            taken.append(route)
            if not route.go_on:
                break
    return taken or [EVERYTHING]


def told_by(route: Route, channels: Collection[str]) -> list[str]:
    """Return the channels of a route; if none of them can be told, all that can: too many, not none."""
    if route.channels is None:
        return sorted(channels)
    usable = [name for name in route.channels if name in channels]
    return usable or ([] if route.channels == [] else sorted(channels))


def key_of(labels: Mapping[str, str]) -> str:
    """Return what names the group, for people and receivers; a long one is cut and ends in a hash."""
    text = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    if len(text) <= LONGEST_KEY:
        return f"{{{text}}}"
    return f"{{{text[:LONGEST_KEY]}…}}{sha256(text.encode()).hexdigest()[:16]}"
