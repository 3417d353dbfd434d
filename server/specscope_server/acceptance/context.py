"""What every number of one answer shares: what was measured, the present, and how a source is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specscope_server.acceptance.gather import GAUGES, LaunchData
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.raw_names import raw_name
from specscope_server.acceptance.schemas import Number, NumberState
from specscope_server.acceptance.statistics import Ratio
from specscope_server.kit.coverage import Coverage
from specscope_server.kit.engines import engine_title
from specscope_server.kit.timeparse import iso_or_none
from specscope_server.kit.versions import version_text


@dataclass(frozen=True, slots=True)
class Context:
    """What every number of one answer shares."""

    measured: Measured
    now_ms: int
    stale_after_ms: int
    rank: int | None = None
    """The one data-parallel rank that was asked for; None = all."""
    is_over: bool = False
    """The newest launch shown was followed by another one: it is history, not out of date."""
    coverage: Coverage | None = None
    """Which ranks of the newest launch report; None without a launch."""

    @property
    def newest(self) -> LaunchData | None:
        """Return the data of the newest launch."""
        return self.measured.launches[-1] if self.measured.launches else None

    @property
    def is_stale(self) -> bool:
        """Tell whether the window reaches the present but nothing was read lately."""
        newest = self.newest_ms
        reaches_now = self.measured.window.to_ms > self.now_ms - self.stale_after_ms
        is_old = newest is not None and self.now_ms - newest > self.stale_after_ms
        return reaches_now and is_old and not self.is_over

    @property
    def newest_ms(self) -> int | None:
        """Return when the newest sample of all was taken."""
        times = [time for data in self.measured.launches for time in data.newest_ms.values()]
        return max(times, default=None)

    def source(self, *metrics: str, live: bool = False, of: Sequence[LaunchData] = ()) -> str:
        """Return raw metric names and the versions that wrote what is shown; of nothing shown, all versions.

        ``live``: only the newest launch speaks of the present. ``of``: the launches used, where that is
        known.
        """
        known = self.measured.launches
        used = [data for data in known if all(contributes(data, metric) for metric in metrics)]
        behind = of or (known[-1:] if live else used or known)
        told: dict[tuple[str, str], set[str]] = {}
        for data in behind:
            engine, told_by = data.launch.engine, data.launch.version_source
            version = version_text(data.launch.engine_version, told_by)
            names = ", ".join(raw_name(engine, metric, told_by) for metric in metrics)
            told.setdefault((engine, names), set()).add(version or "of unknown version")
        if not told:
            return ", ".join(raw_name("sglang", metric) for metric in metrics)
        return "; ".join(
            f"{names}; {engine_title(engine)} {' and '.join(sorted(versions))}"
            for (engine, names), versions in told.items()
        )

    def number(
        self,
        value: float | None,
        unit: str,
        definition: str,
        metrics: tuple[str, ...],
        *,
        state: NumberState | None = None,
        n: float | None = None,
        n_unit: str = "",
        interval: Ratio | None = None,
        note: str = "",
        live: bool = False,
        as_of_ms: int | None = None,
        source: str = "",
        of: Sequence[LaunchData] = (),
    ) -> Number:
        """Return a number in the first of these states that holds: given, no data, stale, idle, ok.

        ``live``: the number is of the present moment, so that an idle engine's value is a value like any
        other.
        """
        time_ms = as_of_ms or self.measured.newest_ms(*metrics)
        shown = interval if interval is not None and value is not None else Ratio(None)
        return Number(
            value=value, unit=unit, state=state or self._state(value, live), definition=definition,
            source=source or self.source(*metrics, live=live, of=of), n=n, n_unit=n_unit,
            low=shown.low, high=shown.high, interval_method=shown.method, as_of=iso_or_none(time_ms),
            age_seconds=None if time_ms is None else (self.now_ms - time_ms) / 1_000, note=note,
        )  # fmt: skip

    def _state(self, value: float | None, live: bool) -> NumberState:
        if value is None:
            return NumberState.NO_DATA
        if self.is_stale:
            return NumberState.STALE
        return NumberState.IDLE if self.measured.ends_idle and not live else NumberState.OK


def contributes(data: LaunchData, metric: str) -> bool:
    """Tell whether a launch's samples of a metric are in its number (gauges count while active only)."""
    if metric in GAUGES:
        return data.shows(metric)
    return metric in data.newest_ms
