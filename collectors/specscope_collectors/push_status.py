"""How pushing goes: for the log, for `specscope collect --status`, for /metrics and for the Sources page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

FILE = "status.json"


class PushStatus(msgspec.Struct, kw_only=True):
    """As of ``time_ms``; counts are since the process began."""

    time_ms: int = 0
    pid: int = 0
    server: str = ""
    instance: str = ""
    state: str = "starting"
    """``starting``, ``ok``, ``waiting`` (server away or busy), ``denied``, ``wrong_server``, ``stopped``."""
    problem: str = ""
    waiting: int = 0
    """Batches that the server does not have yet."""
    in_memory: int = 0
    """Those of them that are on no disk."""
    spool_bytes: int = 0
    oldest_seconds: float = 0.0
    """Age of the oldest batch that waits."""
    appended: int = 0
    sent: int = 0
    repeated: int = 0
    set_aside: int = 0
    collided: int = 0
    """Batches whose sequence the server had from another spool of the same identity: they are lost."""
    refused_times: int = 0
    """Observations that the server did not take, because of their time."""
    dropped: int = 0
    damaged_bytes: int = 0
    last_success_ms: int | None = None
    spool_problem: str = ""


def write_status(folder: Path, status: PushStatus) -> None:
    """Replace the file; a full disk or a read-only folder is not in the way of the rest."""
    path = folder / FILE
    making = path.with_name(FILE + ".making")
    with contextlib.suppress(OSError):
        making.write_bytes(msgspec.json.format(msgspec.json.encode(status), indent=2))
        making.replace(path)


def read_status(folder: Path) -> PushStatus:
    """Return what the process that uses this spool wrote last. Raises OSError, ValueError."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=PushStatus)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{folder / FILE} is damaged: {error}") from None


def words_of(status: PushStatus, now_ms: int) -> list[str]:
    """Return the status in words, one line each."""
    age = max(0, now_ms - status.time_ms) / 1_000
    runs = "runs" if status.state != "stopped" and is_alive(status.pid) else "does not run"
    lines = [
        f"process   {runs} (pid {status.pid}), status {age:.0f} s old",
        f"server    {status.server}: {status.state}" + (f" ({status.problem})" if status.problem else ""),
        f"waiting   {status.waiting} batches, {status.spool_bytes / 1e6:.1f} MB on disk, the oldest "
        f"{status.oldest_seconds:.0f} s old",
        f"sent      {status.sent} batches ({status.repeated} of them again)",
    ]
    troubles = {
        "set aside": status.set_aside, "dropped": status.dropped,
        "refused for their time": status.refused_times, "lost to a copy of this spool": status.collided,
        "in memory": status.in_memory,
        "damaged bytes": status.damaged_bytes,
    }  # fmt: skip
    told = ", ".join(f"{count} {name}" for name, count in troubles.items() if count)
    if told or status.spool_problem:
        lines.append("trouble   " + "; ".join(text for text in (told, status.spool_problem) if text))
    return lines


def is_alive(pid: int) -> bool:
    """Tell whether there is a process with this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return pid > 0


class StatusMetrics(Collector):
    """The status as Prometheus metrics."""

    GAUGES = ("waiting", "in_memory", "spool_bytes", "oldest_seconds")
    COUNTERS = (
        "appended",
        "sent",
        "repeated",
        "set_aside",
        "collided",
        "refused_times",
        "dropped",
        "damaged_bytes",
    )

    def __init__(self, source: object) -> None:
        """``source`` has a `status`."""
        self._source = source

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics."""
        status: PushStatus = self._source.status()  # type: ignore[attr-defined]
        up = status.state == "ok"
        yield GaugeMetricFamily("specscope_push_up", "1 when the last push succeeded.", value=float(up))
        for name in self.GAUGES:
            yield GaugeMetricFamily(f"specscope_push_{name}", _help(name), value=float(getattr(status, name)))
        for name in self.COUNTERS:
            yield CounterMetricFamily(
                f"specscope_push_{name}", _help(name), value=float(getattr(status, name))
            )


def _help(name: str) -> str:
    return f"Of the spool and the push from it: {name.replace('_', ' ')}."
