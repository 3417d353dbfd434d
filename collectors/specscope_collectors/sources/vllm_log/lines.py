"""Lines of vLLM's log that say something about speculation or load, in the forms of all versions.

The V1 engine prints what happened since its last such line (``SpecDecoding metrics: Mean acceptance length:
2.73, … Accepted: 124 tokens, Drafted: 215 tokens, Per-position acceptance rate: 0.806, 0.583, 0.333, …``),
with fewer fields and in another order in its first versions. The V0 engine prints totals since its start
(``Speculative metrics: Draft acceptance rate: 0.577, … Number of emitted tokens: 196.``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"(\d{1,15}(?:\.\d{1,10})?|nan)"
_RATES = re.compile(r"Per-position acceptance rate: ((?:\d\.\d{1,6}(?:, )?){1,64})")
_ENGINE = re.compile(r"Engine (\d{1,5}): ")
SPECULATION, TOTALS, LOAD = "SpecDecoding metrics: ", "Speculative metrics: ", "Avg prompt throughput: "
MAX_DEPTH = 64
LENGTH_HALF, RATE_HALF = 0.005, 0.0005
"""Half a unit of the last printed decimal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What the V1 engine printed; None = not in this form."""

    accepted: int
    drafted: int
    length: float | None = None
    """Mean acceptance length, rounded to two decimals."""
    drafted_per_second: float | None = None
    rates: tuple[float, ...] = ()
    """Accepted per cycle by position, rounded to three decimals."""
    percent: float | None = None
    """Draft acceptance rate in percent, rounded to one decimal."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What the V0 engine printed: since its start."""

    depth: int
    drafted: int
    emitted: int
    share: float | None
    """Accepted / drafted, each draft judged by itself."""


@dataclass(frozen=True, slots=True)
class Load:
    """What every version prints beside."""

    engine: str | None
    """Number of the data-parallel engine; None = not said, or several together."""
    values: dict[str, float]
    """Canonical metric → value."""


def read_interval(text: str) -> Interval | None:
    """Return what follows `SPECULATION`; None when the counts are not whole."""
    accepted, drafted = _number(text, r"Accepted: ", r" tokens"), _number(text, r"Drafted: ", r" tokens")
    if accepted is None or drafted is None or accepted != int(accepted) or drafted != int(drafted):
        return None
    length = _number(text, r"Mean acceptance length: ")
    return Interval(
        int(accepted),
        int(drafted),
        length,
        _number(text, r"Drafted throughput: ", r" tokens/s"),
        _rates(text, length),
        _number(text, r"Draft acceptance rate: ", r"%"),
    )


def _rates(text: str, length: float | None) -> tuple[float, ...]:
    """Return the rates by position; none where a cut line lacks some, since τ = 1 + ΣSₖ."""
    match = _RATES.search(text)
    rates = tuple(float(rate) for rate in match[1].rstrip(", ").split(", ")) if match else ()
    rounding = LENGTH_HALF + RATE_HALF * len(rates) + 1e-9
    return () if length is not None and abs(1 + sum(rates) - length) > rounding else rates


def read_totals(text: str) -> Totals | None:
    """Return what follows `TOTALS`; None when it is not whole."""
    depth, drafted, emitted = (
        _number(text, rf"Number of {name} tokens: ", r"[,.](?!\d)")
        for name in ("speculative", "draft", "emitted")
    )
    if depth is None or drafted is None or emitted is None or not 0 < depth <= MAX_DEPTH:
        return None
    return Totals(int(depth), int(drafted), int(emitted), _number(text, r"Draft acceptance rate: "))


def read_load(text: str) -> Load | None:
    """Return what a line with `LOAD` says."""
    found = {
        "throughput.generated": _number(text, r"Avg generation throughput: ", r" tokens/s"),
        "requests.running": _number(text, r"Running: ", r" reqs"),
        "requests.queued": _number(text, r"(?:Waiting|Pending): ", r" reqs"),
        "kv.usage": _number(text, r"(?:GPU )?KV cache usage: ", r"%"),
    }
    values = {metric: value for metric, value in found.items() if value is not None}
    if "kv.usage" in values:
        values["kv.usage"] /= 100
        if values["kv.usage"] > 1:
            del values["kv.usage"]
    engine = _ENGINE.search(text)
    return Load(str(int(engine[1])) if engine else None, values) if values else None


def _number(text: str, before: str, after: str = "") -> float | None:
    """Return the number between two texts; None if it is not there or NaN."""
    match = re.search(before + _NUMBER + after, text)
    return None if match is None or match[1] == "nan" else float(match[1])
