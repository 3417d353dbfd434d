"""The fields of a trace event that matter; everything else is skipped while it is decoded."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Scalar: TypeAlias = int | float | str | None


class Args(msgspec.Struct, gc=False):
    """Arguments of an event."""

    correlation: Scalar = None
    """Joins a kernel to the call that launched it; all kernels of a CUDA graph share that of its launch."""
    device: Scalar = None
    stream: Scalar = None


class TraceEvent(msgspec.Struct):
    """One entry of ``traceEvents``. Times are microseconds."""

    ph: str = ""
    cat: str | None = None
    name: Scalar = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar = None
    args: Args | None = None


many = msgspec.json.Decoder(list[TraceEvent])
one = msgspec.json.Decoder(TraceEvent)


def number(value: Scalar) -> float | None:
    """Return a number that is one, also where it was written as a text; None for anything else."""
    if value.__class__ is float or value.__class__ is int:
        result = float(value)
    elif isinstance(value, str):
        try:
            result = float(value)
        except ValueError:
            return None
    else:
        return None
    return result if -1e18 < result < 1e18 else None
