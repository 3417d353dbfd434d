"""The probe's times as metric families, as the real probe writes them: the first rank reports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from specscope_server.demo.exposition import Family, Labels, Row, Snapshot
from specscope_server.demo.probe_times import Sums

RANKS, STRAGGLER = 8, 5
LATE, EVEN = 0.08, 0.001
"""How much of verify the straggler comes late, and by how much the others differ."""
COMMON = {"overlap": "off", "clock": "device"}
INFO = {
    "version": "demo", "engine_version": "0.5.23", "worker": "EAGLEWorkerV2", "overlap": "off",
    "clock": "device",
}  # fmt: skip


def _shapes(snapshot: Snapshot) -> Iterator[tuple[str, Labels, Sums]]:
    for (kind, batch, width), sums in snapshot.telemetry.probe.sums.items():
        yield kind, {"batch": batch, "num_draft_tokens": width, **COMMON}, sums


def _cycles(snapshot: Snapshot) -> list[Row]:
    return [
        ({**snapshot.scheduler(rank, kind=kind), **labels}, float(sums.cycles))
        for rank in range(RANKS)
        for kind, labels, sums in _shapes(snapshot)
    ]


def _seconds(snapshot: Snapshot) -> list[Row]:
    return [
        ({**snapshot.scheduler(rank, kind=kind), **labels}, sum(sums.parts.values()) / 1000)
        for rank in range(RANKS)
        for kind, labels, sums in _shapes(snapshot)
        if kind != "gap"
    ]


def _phases(snapshot: Snapshot) -> list[Row]:
    return [
        ({**snapshot.scheduler(rank, phase=phase), **labels}, spent_ms / 1000)
        for rank in range(RANKS)
        for _, labels, sums in _shapes(snapshot)
        for phase, spent_ms in parts_of_rank(sums.parts, rank).items()
    ]


def parts_of_rank(parts: Mapping[str, float], rank: int) -> Mapping[str, float]:
    """Return what a rank spends: the straggler comes late to verify, so that the others wait and it does not.

    All leave verify together, so a rank's cycle is as long as that of the first.
    """
    if not rank or "verify" not in parts:
        return parts
    late = LATE if rank == STRAGGLER else EVEN * (rank % 3 - 1)
    spent_ms = late * parts["verify"]
    prepare_ms = parts["verify_prepare"] + spent_ms
    return {**parts, "verify": parts["verify"] - spent_ms, "verify_prepare": max(prepare_ms, 0.0)}


def _warm_up(of: Callable[[Sums], float]) -> Callable[[Snapshot], list[Row]]:
    def rows(snapshot: Snapshot) -> list[Row]:
        found: dict[str, float] = {}
        for kind, _, sums in _shapes(snapshot):
            found[kind] = found.get(kind, 0.0) + of(sums)
        return [(snapshot.scheduler(kind=kind, clock="device"), value) for kind, value in found.items()]

    return rows


def _wall(snapshot: Snapshot) -> list[Row]:
    return [(snapshot.scheduler(), snapshot.telemetry.probe.wall_ms / 1000)]


def _host(snapshot: Snapshot) -> list[Row]:
    return [(snapshot.scheduler(where="cycle"), 15e-6 * snapshot.telemetry.probe.cycles_seen)]


def _parts(snapshot: Snapshot) -> list[Row]:
    return [(snapshot.scheduler(part=part, state="on"), 1.0) for part in ("timing", "output")]


FAMILIES = (
    Family("specscope_phase_seconds_total", "counter", "Seconds of timed cycles by phase.", _phases),
    Family("specscope_cycle_seconds_total", "counter", "Seconds of timed cycles.", _seconds),
    Family("specscope_cycles_timed_total", "counter", "Cycles whose times were added.", _cycles),
    Family(
        "specscope_warm_up_seconds_total", "counter", "What the first cycles took.",
        _warm_up(lambda sums: sums.warm_up_ms / 1000),
    ),
    Family(
        "specscope_warm_up_cycles_total", "counter", "First cycles of each shape.",
        _warm_up(lambda sums: float(sums.warm_up_cycles)),
    ),
    Family("specscope_probe_wall_seconds_total", "counter", "Wall time of all cycles.", _wall),
    Family(
        "specscope_cycles_seen_total", "counter", "Cycles that the probe saw.",
        lambda s: [(s.scheduler(), float(s.telemetry.probe.cycles_seen))],
    ),
    Family("specscope_probe_host_seconds_total", "counter", "Host time of the probe.", _host),
    Family("specscope_probe_part", "gauge", "1: the part is in this state.", _parts),
    Family(
        "specscope_probe_info", "gauge", "What probe, in which engine.",
        lambda s: [({**s.scheduler(), **INFO}, 1.0)],
    ),
)  # fmt: skip
