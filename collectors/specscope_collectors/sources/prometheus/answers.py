"""JSON of the Prometheus HTTP API → series; whatever else it may be becomes a `BadAnswerError`."""

from __future__ import annotations

from typing import Any

import msgspec


class BadAnswerError(ValueError):
    """The body is no answer of a Prometheus API; the message says what it is."""


class RawSeries(msgspec.Struct, frozen=True):
    """One series: its labels with ``__name__``, and (seconds, text of the value) pairs."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Envelope(msgspec.Struct):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    error_type: str = msgspec.field(default="", name="errorType")
    warnings: list[str] = []


class _Matrix(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class _Instant(msgspec.Struct):
    value: tuple[float, str]


class Reply(msgspec.Struct, frozen=True):
    """What an answer says: data, or why there is none."""

    data: msgspec.Raw
    error: str = ""
    warnings: tuple[str, ...] = ()


def reply(body: bytes) -> Reply:
    """Return the answer in ``body``. Raises `BadAnswerError`."""
    envelope = _decode(body, _Envelope)
    if envelope.status not in ("success", "error"):
        raise BadAnswerError(f"its status is {envelope.status[:40]!r}")
    error = (envelope.error or envelope.error_type or "no reason given") if envelope.status == "error" else ""
    return Reply(envelope.data, error[:300], tuple(warning[:200] for warning in envelope.warnings[:5]))


def matrix(data: msgspec.Raw) -> list[RawSeries]:
    """Return the series of a range. Raises `BadAnswerError`."""
    found = _decode(data, _Matrix)
    if found.result_type != "matrix":
        raise BadAnswerError(f"it holds a {found.result_type[:40]!r} where a matrix was asked for")
    series: list[RawSeries] = _decode(found.result, list[RawSeries])
    return series


def scalar(data: msgspec.Raw) -> float:
    """Return the value of a scalar, which VictoriaMetrics gives as a vector. Raises `BadAnswerError`."""
    found = _decode(data, _Matrix)
    if found.result_type == "vector":
        (instant,) = _decode(found.result, tuple[_Instant])
        _, value = instant.value
    else:
        _, value = _decode(found.result, tuple[float, str])
    return float(value)


def strings(data: msgspec.Raw) -> list[str]:
    """Return a list of names or values; null is an empty one. Raises `BadAnswerError`."""
    return _decode(data, list[str] | None) or []


def _decode(body: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        begins = bytes(body)[:40].decode(errors="replace")
        raise BadAnswerError(f"it begins {begins!a} ({str(error)[:120]})") from error
