"""Profiler captures, reduced, as they travel (a part of `specscope_collectors.observations`)."""

from __future__ import annotations

import msgspec

from specscope_collectors.records import Labels, Record


class TracePhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One phase of one rank in a profiler capture, occurrence by occurrence.

    Arrays are little-endian float32, milliseconds, one value for each kept occurrence, in their order.
    ``class_ms`` and ``gap_ms`` add up to ``wall_ms``: where kernels overlap, an instant belongs to the one
    that computes, so that what stands under a collective is the part of it that nothing hides.
    """

    phase: str
    """``draft``, ``verify``, ``sampling``, ``draft_extend``, ``prefill`` …; ``cycle`` is a whole cycle, and
    ``unattributed`` what of it no phase covers."""
    count: int
    """Occurrences seen; more than are kept when there are very many."""
    wall_ms: bytes
    """From the first kernel's beginning to the last one's end; without GPU activity, the CPU's range."""
    cpu_ms: bytes = b""
    """Length of the CPU's range: with overlap scheduling this is launch time only."""
    class_ms: dict[str, bytes] = {}
    busy_ms: dict[str, bytes] = {}
    """The same classes where overlapping kernels count each in full."""
    gap_ms: bytes = b""
    """No kernel of the phase runs: launch gaps."""
    batch_sizes: dict[int, int] = {}
    """Batch size → occurrences."""


class TraceKernel(msgspec.Struct, frozen=True, kw_only=True):
    """All kernels of one name on one rank."""

    name: str
    kernel_class: str
    count: int
    total_ms: float


class TraceRank(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rank's part of a capture says."""

    labels: Labels
    basis: str
    """How phases were found: ``launches``, ``gpu_ranges``, ``structure``, ``cpu_ranges`` or ``none``."""
    confidence: float = 1.0
    """Share of the cycles with the usual form, where phases were found by structure."""
    cycles: int = 0
    ranges: dict[str, int] = {}
    """Named ranges found: phase → how many."""
    phases: tuple[TracePhase, ...] = ()
    span_ms: float = 0.0
    """From the first event to the last one."""
    gpu_busy_ms: float = 0.0
    """Union of everything that ran on the GPU."""
    unattributed_ms: float = 0.0
    """Kernel time that belongs to no phase."""
    kernels: int = 0
    top: tuple[TraceKernel, ...] = ()
    other: tuple[TraceKernel, ...] = ()
    """Kernels whose names nobody knows, the longest first."""
    refused: dict[str, int] = {}
    """Events left out: why → how many."""
    clock_offset_ms: float | None = None
    """Clock of this rank minus that of the first rank, by the ends of their collectives."""


class TraceCollectives(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of one phase, each compared over the ranks that took part in it."""

    phase: str
    group: Labels
    """Labels that the ranks share."""
    aligned: int
    """Collectives that were found on all ranks."""
    not_aligned: int
    transfer_ms: float
    """Σ of the shortest duration over ranks: what the last to arrive needed."""
    waiting_ms: dict[str, float]
    """Rank → Σ of what it took longer than that: it waited for the last one."""
    last: dict[str, int]
    """Rank → how often it was the last to arrive, so that others waited for it."""


class TraceFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a capture."""

    name: str
    sha256: str
    bytes: int
    unpacked_bytes: int
    events: int
    trouble: str = ""
    """Why it was read in part only; empty = it was read whole."""


class TraceSummary(Record, frozen=True, kw_only=True, tag="trace", omit_defaults=True):
    """One profiler capture, reduced: per rank and phase, time by class of kernel."""

    key: str
    """Fingerprint of the files: the same capture is stored once."""
    time_ms: int
    """When the capture began."""
    name: str
    note: str = ""
    files: tuple[TraceFile, ...]
    ranks: tuple[TraceRank, ...]
    collectives: tuple[TraceCollectives, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know of these numbers, in words."""
