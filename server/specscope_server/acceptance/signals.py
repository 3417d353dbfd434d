"""What can be alerted on about acceptance. Every number is the summary's own, window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance import numbers
from specscope_server.acceptance.bound_signals import accept_length_at_most, draft_acceptance_at_most
from specscope_server.acceptance.context import Context
from specscope_server.acceptance.doubts import with_doubts
from specscope_server.acceptance.plain import ended
from specscope_server.acceptance.position_signals import POSITION_SIGNALS
from specscope_server.acceptance.rolling import rolling
from specscope_server.acceptance.schemas import Number, NumberState
from specscope_server.acceptance.self_signals import SELF_SIGNALS
from specscope_server.acceptance.service import engine_rate
from specscope_server.acceptance.statistics import Floats
from specscope_server.kit.signal import Read, Signal, SignalQuery, SignalSeries, Target, Why, each_server

PAGE = "/acceptance"
WHYS = {
    NumberState.OK: Why.OK, NumberState.IDLE: Why.OK, NumberState.STALE: Why.STALE,
    NumberState.FEW: Why.FEW, NumberState.UNDETERMINED: Why.REFUSED, NumberState.NO_DATA: Why.NO_DATA,
}  # fmt: skip
"""A window that ends idle still tells of its active part."""


def why_of(number: Number, context: Context) -> Why:
    """Return whether a number can be judged; one without a value at an idle engine is idle, not missing."""
    if number.value is None and number.state is not NumberState.UNDETERMINED:
        return Why.IDLE if context.measured.ends_idle else Why.NO_DATA
    return WHYS[number.state]


def series_of(server: Target, found: Sequence[Number], contexts: Sequence[Context]) -> SignalSeries:
    """Return numbers as one series; the newest one's words go along."""
    newest = found[-1]
    return SignalSeries(
        labels={"server": server.name},
        value=floats(number.value for number in found),
        why=np.array([why_of(*pair) for pair in zip(found, contexts, strict=True)], dtype=np.uint8),
        n=floats(number.n for number in found),
        lower=floats(number.low for number in found),
        upper=floats(number.high for number in found),
        requests=floats(_requests(context) for context in contexts),
        note=newest.note,
        evidence={
            "source": newest.source,
            "definition": newest.definition,
            "interval": newest.interval_method,
        },
    )


def floats(values: Iterable[float | None]) -> Floats:
    """Return values as an array, None as NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _requests(context: Context) -> float | None:
    requests = context.measured.requests
    return None if requests is None else float(requests.n)


def _reader(word: Callable[[Context], Number], *, of_drafts: bool = True) -> Read:
    def read(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
        rolled = rolling(session, query, server)
        contexts, launches = rolled.contexts, rolled.launches
        if not any(context.measured.launches for context in contexts):
            return []
        found = [with_doubts(context.measured, word(context)) for context in contexts]
        series = [series_of(server, found, contexts)]
        return ended(query, launches, series) if of_drafts else series

    return each_server(read)


def _signal(
    name: str,
    unit: str,
    meaning: str,
    word: Callable[[Context], Number],
    n_unit: str,
    *,
    interval: bool,
    of_drafts: bool = True,
) -> Signal:
    return Signal(
        f"acceptance.{name}", unit, meaning, _reader(word, of_drafts=of_drafts), n_unit=n_unit,
        has_interval=interval, page=PAGE,
    )  # fmt: skip


SIGNALS: tuple[Signal, ...] = (
    _signal("accept_length", "tokens/cycle", "Accept length τ from the best evidence, bonus included.",
            numbers.accept_length, "cycles", interval=True),
    _signal("draft_acceptance", "1", "Strict share of the proposed drafts that were accepted; no bonus.",
            numbers.draft_acceptance, "cycles", interval=True),
    _signal("accept_length_at_most", "tokens/cycle",
            "τ; where it is derived from finished requests, the largest that explains their output: drafts "
            "past the end of an answer are accepted and never output.",
            accept_length_at_most, "cycles", interval=True),
    _signal("draft_acceptance_at_most", "1",
            "Draft acceptance; where it is derived from finished requests, the largest that explains their "
            "output.",
            draft_acceptance_at_most, "cycles", interval=True),
    _signal("engine_reported_rate", "1", "The rate as the engine printed it, under its version's definition.",
            lambda context: engine_rate(context).number, "buckets", interval=False),
    _signal("cycles_per_second", "cycles/s", "Cycles per second of active time.",
            numbers.verify_calls_per_second, "cycles", interval=False),
    _signal("tokens_per_second", "tokens/s", "Generated tokens per second of active time, of all ranks.",
            numbers.generated_tokens_per_second, "tokens", interval=False, of_drafts=False),
    *POSITION_SIGNALS,
    *SELF_SIGNALS,
)  # fmt: skip
"""`kit.signal.Signal`s of this domain."""
