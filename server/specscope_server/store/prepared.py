"""Sort and check a batch before any transaction is open: everything that needs no database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from specscope_collectors.observations import (
    Batch,
    Distribution,
    Event,
    Increment,
    Launch,
    Level,
    Observation,
    RequestRecord,
    SourceHealth,
    StateProfile,
    TraceSummary,
)
from specscope_server.kit.errors import InvalidInput
from specscope_server.store.activity_writer import event_reason, health_reason, request_reason
from specscope_server.store.dialects import DAY_MS
from specscope_server.store.distribution_writer import distribution_reason
from specscope_server.store.identity import launch_reason
from specscope_server.store.limits import MAX_INTEGER, Limits, text_reason
from specscope_server.store.refusal import Reason
from specscope_server.store.scalars import Checked, SeriesKey, check, gather, series_reason
from specscope_server.store.state_writer import profile_reason
from specscope_server.store.trace_writer import trace_reason

R = TypeVar("R", bound=Observation)


@dataclass(slots=True)
class Prepared:
    """What of a batch may be stored; ``refused`` counts the rest by reason."""

    now_ms: int
    keys: list[SeriesKey]
    """Series of the scalars, by slot."""
    scalars: Checked
    distributions: list[Distribution] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    health: list[SourceHealth] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)
    profiles: list[StateProfile] = field(default_factory=list)
    traces: list[TraceSummary] = field(default_factory=list)
    refused: Counter[Reason] = field(default_factory=Counter)

    @property
    def days(self) -> frozenset[int]:
        """Days (since the epoch) that samples and histograms fall on."""
        days = set(np.unique(self.scalars.time_ms // DAY_MS).tolist())
        return frozenset(days | {record.time_ms // DAY_MS for record in self.distributions})

    @property
    def newest_ms(self) -> int:
        """Time of the newest thing that the batch tells of; 0 for an empty one."""
        groups = (self.events, self.health, self.requests, self.launches, self.profiles)
        times = [record.time_ms for group in groups for record in group]
        return max([self.newest_measured_ms, *times])

    @property
    def newest_measured_ms(self) -> int:
        """Time of the newest measurement; 0 when there is none."""
        newest = int(self.scalars.time_ms.max()) if len(self.scalars.time_ms) else 0
        return max((newest, *(record.time_ms for record in self.distributions)))


def prepare(batch: Batch, limits: Limits, now_ms: int) -> Prepared:
    """Check every observation of the batch. Raises InvalidInput when the batch itself cannot be."""
    _check_names(batch)
    oldest_ms = limits.oldest_ms(now_ms)
    groups = _group(batch)
    scalars = gather(groups.scalars)
    if batch.launch_key is None:
        for slot, key in enumerate(scalars.keys):
            if key.of_launch and scalars.reasons[slot] is None:
                scalars.reasons[slot] = Reason.NO_LAUNCH
    checked = check(scalars, oldest_ms, now_ms)
    prepared = Prepared(now_ms, scalars.keys, checked, refused=Counter(checked.refused))

    def keep(records: list[R], reason: Callable[[R, int, int], Reason | None]) -> list[R]:
        kept = []
        for record in records:
            why = reason(record, oldest_ms, now_ms)
            if why is None:
                kept.append(record)
            else:
                prepared.refused[why] += 1
        return kept

    def histogram_reason(record: Distribution, oldest_ms: int, now_ms: int) -> Reason | None:
        no_launch = Reason.NO_LAUNCH if batch.launch_key is None else None
        series = series_reason(Distribution, record.metric, record.labels)
        return series or no_launch or distribution_reason(record, oldest_ms, now_ms)

    def state_reason(record: StateProfile, oldest_ms: int, now_ms: int) -> Reason | None:
        no_launch = Reason.NO_LAUNCH if batch.launch_key is None else None
        return no_launch or profile_reason(record, oldest_ms, now_ms)

    prepared.distributions = keep(groups.distributions, histogram_reason)
    prepared.launches = keep(groups.launches, launch_reason)
    prepared.events = keep(groups.events, event_reason)
    prepared.health = keep(groups.health, health_reason)
    prepared.requests = keep(groups.requests, request_reason)
    prepared.profiles = keep(groups.profiles, state_reason)
    prepared.traces = keep(groups.traces, trace_reason)
    return prepared


@dataclass(slots=True)
class _Groups:
    scalars: list[Increment | Level] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    health: list[SourceHealth] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)
    profiles: list[StateProfile] = field(default_factory=list)
    traces: list[TraceSummary] = field(default_factory=list)


def _group(batch: Batch) -> _Groups:
    groups = _Groups()
    lists: dict[type[Any], list[Any]] = {
        Increment: groups.scalars,
        Level: groups.scalars,
        Distribution: groups.distributions,
        Launch: groups.launches,
        Event: groups.events,
        SourceHealth: groups.health,
        RequestRecord: groups.requests,
        StateProfile: groups.profiles,
        TraceSummary: groups.traces,
    }
    for observation in batch.observations:
        lists[type(observation)].append(observation)
    return groups


def _check_names(batch: Batch) -> None:
    names = {
        "collector_id": batch.collector_id,
        "target.name": batch.target.name,
        "target.base_url": batch.target.base_url,
        "launch_key": batch.launch_key,
    }
    for field_name, name in names.items():
        if name == "" or text_reason(name):
            raise InvalidInput(
                f"the batch's {field_name} {name!r:.80} is empty, too long or no valid text; send a name"
            )
    if not 0 < batch.sequence <= MAX_INTEGER:
        raise InvalidInput(
            f"the batch's sequence {batch.sequence} is not between 1 and {MAX_INTEGER}; count from 1 up"
        )
