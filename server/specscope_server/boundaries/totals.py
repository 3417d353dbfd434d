"""What two Frobenius totals of hidden states can and cannot mean (pure).

‖X‖_F² = Σ ‖h‖² over rows: a total grows as √n with the number of rows, and one massive row (a sink, such as
position 0) can be nearly all of it. Of n rows with total F nothing else is known than √(F²/n), the RMS of
row norms; the longest row is at most F.
"""

from __future__ import annotations

import math

from specscope_server.boundaries.schemas import Totals, TotalsSide
from specscope_server.kit.errors import InvalidInput

MAX_TOTAL, MAX_TOKENS, MAX_HIDDEN = 1e12, 10**9, 1 << 20
FEW_TOKENS = 50
NEAR = 0.05
"""Relative difference of RMS norms below which they are called alike."""

CANNOT = (
    "which slot or layer the states are of",
    "whether the mean or the median row is longer: an RMS is ruled by its longest rows",
    "whether directions are the same: a rotated state has the same total",
    "whether position 0 or a prefix from the cache is in it: serving often computes no row for those",
)
INSTEAD = (
    "norms of single rows behind position 4: specscope reference inspect FILE prints them for a dump",
    "profiles of both sides by slot: specscope reference build, and the probe in serving",
    "the table of layer ids, which needs no states at all",
)


def totals(
    total_a: float, tokens_a: int, total_b: float, tokens_b: int, hidden_size: int | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> Totals:  # fmt: skip
    """Return what they can mean. Raises `InvalidInput` for numbers that no total can be."""
    _check("total_a", total_a, tokens_a, "tokens_a", hidden_size)
    _check("total_b", total_b, tokens_b, "tokens_b", hidden_size)
    a = _side(names[0], total_a, tokens_a, hidden_size)
    b = _side(names[1], total_b, tokens_b, hidden_size)
    low, high = sorted((a, b), key=lambda side: side.rms_norm)
    sink = sink_norm(high, low.rms_norm)
    return Totals(
        a=a, b=b, hidden_size=hidden_size,
        verdict=_verdict(a, b, sink), total_ratio=total_b / total_a, rms_ratio=b.rms_norm / a.rms_norm,
        lengths_alone=math.sqrt(tokens_b / tokens_a), one_row=_one_row(low, high, sink), sink_norm=sink,
        sink_factor=None if sink is None else sink / low.rms_norm,
        sink_share=None if sink is None else (sink / high.total) ** 2,
        cannot=list(CANNOT), ask_instead=list(INSTEAD),
    )  # fmt: skip


def sink_norm(high: TotalsSide, rms_norm: float) -> float | None:
    """Return the norm r of one row so that the n − 1 others have that RMS: r² = F² − (n − 1)·rms².

    None: they are alike already, or no single row can do it (r² < 0).
    """
    if high.rms_norm <= rms_norm * (1 + NEAR):
        return None
    square = high.total**2 - (high.tokens - 1) * rms_norm**2
    return math.sqrt(square) if square > 0 else None


def _check(name: str, total: float, tokens: int, tokens_name: str, hidden_size: int | None) -> None:
    if not math.isfinite(total) or not 0 < total <= MAX_TOTAL:
        raise InvalidInput(
            f"{name}={total:g} is no Frobenius norm of states: it is above 0, at most {MAX_TOTAL:g}"
        )
    if not 0 < tokens <= MAX_TOKENS:
        raise InvalidInput(f"{tokens_name}={tokens} is no number of rows: it is from 1 to {MAX_TOKENS}")
    if hidden_size is not None and not 0 < hidden_size <= MAX_HIDDEN:
        raise InvalidInput(f"hidden_size={hidden_size} is no hidden size: it is from 1 to {MAX_HIDDEN}")


def _side(name: str, total: float, tokens: int, hidden_size: int | None) -> TotalsSide:
    rms = total / math.sqrt(tokens)
    others = total / math.sqrt(tokens - 1) if tokens > 1 else 0.0
    notes = []
    if tokens < FEW_TOKENS:
        notes.append(f"{tokens} rows: one unusual row moves this number")
    if tokens > 1:
        notes.append("if position 0 is among them, it may be nearly all of the total")
    return TotalsSide(
        name=name, total=total, tokens=tokens, rms_norm=rms, largest_norm=total, all_but_one_at_most=others,
        per_channel_rms=None if hidden_size is None else rms / math.sqrt(hidden_size), notes=notes,
    )  # fmt: skip


def _verdict(a: TotalsSide, b: TotalsSide, sink: float | None) -> str:
    ratio = b.rms_norm / a.rms_norm
    if abs(math.log(ratio)) <= math.log1p(NEAR):
        return (
            "Per token the two are alike; that does not make them the same states: another slot, a rotated "
            "stream or one long row can give the same number."
        )
    times = f"{max(ratio, 1 / ratio):.3g} times"
    if sink is not None:
        return (
            f"Per token the RMS differs {times}, and one single row would explain all of it: this says "
            "nothing about which layer was captured."
        )
    return (
        f"Per token the RMS differs {times}, and no single row explains it: the states differ in scale. "
        "Which layer they are of, a total does not say."
    )


def _one_row(low: TotalsSide, high: TotalsSide, sink: float | None) -> str:
    if sink is None:
        return "No single row is needed, or enough, to make the two alike per token."
    return (
        f"One row of norm {sink:.4g} beside {high.tokens - 1} rows of {low.rms_norm:.4g} gives the whole "
        f"total of {high.name}, {high.total:.4g}. First positions are often such rows."
    )
