"""Reports of how pushing goes, as a source of the collector on the Sources page."""

from __future__ import annotations

import time

import httpx

from specscope_collectors.observations import Batch, HealthState, SourceHealth, Target
from specscope_collectors.push_exchange import exchange
from specscope_collectors.push_status import PushStatus

SOURCE = "push"
MOST_SECONDS = 60.0


class PushHealth:
    """Reports of pushing, with a sequence that goes on where the server says."""

    def __init__(self, name: str, collector: Target) -> None:
        self._name, self._collector = name, collector
        self._sequence: int | None = None

    def next_sequence(self, client: httpx.Client, url: str, headers: dict[str, str]) -> int | None:
        """Return the next sequence; None while the server cannot be asked."""
        if self._sequence is None:
            try:
                request = client.build_request(
                    "GET", url, params={"collector_id": self._name}, headers=headers
                )
                answer = exchange(client, request, time.monotonic, MOST_SECONDS)
                self._sequence = int(answer.json()["sequence"])
            except (httpx.HTTPError, ValueError, KeyError, TypeError):
                return None
        self._sequence += 1
        return self._sequence

    def ask_again(self) -> None:
        """Ask the server for the sequence: it was ahead of ours."""
        self._sequence = None

    def batch(self, sequence: int, status: PushStatus, shared: dict[str, list[str]], seconds: float) -> Batch:
        """Return the report."""
        troubles = _troubles(status, shared)
        health = SourceHealth(
            source=SOURCE,
            time_ms=status.time_ms,
            state=HealthState.PARTIAL if troubles else HealthState.OK,
            url=status.server,
            duration_seconds=seconds,
            body_bytes=status.spool_bytes,
            detail="; ".join([_depth(status), *troubles])[:500],
            remedy=next(iter(troubles.values()), "")[:500],
        )
        return Batch(
            collector_id=self._name, sequence=sequence, target=self._collector, observations=(health,)
        )


def _depth(status: PushStatus) -> str:
    if not status.waiting:
        return "nothing waits in the spool"
    wait = "1 batch waits" if status.waiting == 1 else f"{status.waiting} batches wait"
    return f"{wait} in the spool, the oldest for {status.oldest_seconds:.0f} s"


def _troubles(status: PushStatus, shared: dict[str, list[str]]) -> dict[str, str]:
    """Return what is wrong → what to do."""
    found = {}
    if status.spool_problem:
        found[
            f"the spool takes nothing ({status.spool_problem}), {status.in_memory} batches are in memory only"
        ] = "make room on the disk of the spool"
    if status.dropped:
        found[f"{status.dropped} batches were dropped since the start"] = (
            "allow a larger spool (--spool-max-bytes)"
        )
    if status.set_aside:
        found[f"{status.set_aside} batches were set aside, because the server cannot apply them"] = (
            "see the folder set-aside in the spool, and the log"
        )
    if status.refused_times:
        found[f"{status.refused_times} observations were refused, being of the future or too old"] = (
            "compare the clocks of this host and the server; nothing older than the server keeps is taken"
        )
    if status.collided:
        found[f"{status.collided} batches were lost, because a copy of this spool pushes, too"] = (
            "remove one of the two spool folders while its collector is stopped"
        )
    for server, others in list(shared.items())[:3]:
        found[f"{server[:80]} is watched by another collector too: {others[0][:120]}"] = (
            "stop one of them: growth of its counters is counted twice"
        )
    return found
