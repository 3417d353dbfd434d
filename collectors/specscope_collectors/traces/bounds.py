"""What reading a trace may cost, and how a trace that cannot be read is refused."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_048_576


class TraceError(ValueError):
    """A file that is no usable trace. Its text names the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for one file. The defaults hold a capture of minutes."""

    max_bytes: int = 16 * 1024 * MEGABYTE
    """Of JSON, after decompression."""
    max_ratio: float = 250.0
    """Of unpacked to packed bytes, once ``ratio_from_bytes`` are unpacked. Traces reach 10 to 40."""
    ratio_from_bytes: int = 64 * MEGABYTE
    max_header_bytes: int = 16 * MEGABYTE
    """Before the first event."""
    max_event_bytes: int = 8 * MEGABYTE
    max_kept: int = 8_000_000
    """Kernels, launches and annotations that are kept (up to 40 bytes each); the rest is left out."""
    chunk_bytes: int = 2 * MEGABYTE
    """Unpacked bytes that are looked at together."""
