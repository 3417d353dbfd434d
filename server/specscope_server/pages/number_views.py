"""Numbers of the API as cards: the value, and everything that lets a reader believe or doubt it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specscope_server.acceptance.schemas import AcceptanceSummary, EngineRate, Number, NumberState
from specscope_server.pages.wording import MISSING, age_text, count_text, number_text, unit_text

_STATES: dict[NumberState, tuple[str, str]] = {
    NumberState.OK: ("ok", ""),
    NumberState.IDLE: ("idle", "idle; last active stretch"),
    NumberState.STALE: ("warn", "stale: nothing read lately"),
    NumberState.FEW: ("unknown", "too few to say"),
    NumberState.UNDETERMINED: ("warn", "undetermined"),
    NumberState.NO_DATA: ("unknown", "no data"),
}
"""State → (kind of the shape, words)."""
_N_UNITS = {"buckets": "time buckets"}


@dataclass(frozen=True, slots=True)
class NumberCard:
    """One headline number as the page shows it."""

    key: str
    name: str
    text: str
    unit: str
    state_kind: str
    """ok, warn, bad, idle or unknown: picks the shape."""
    state_words: str
    """Empty when all is well."""
    is_grey: bool
    facts: tuple[str, ...]
    explanation: tuple[tuple[str, str], ...]
    formula: str = ""


def number_card(key: str, name: str, number: Number) -> NumberCard:
    """Return the card of one number."""
    kind, words = _STATES[number.state]
    return NumberCard(
        key=key,
        name=name,
        text=number_text(number.value, number.unit),
        unit=unit_text(number.unit) if number.value is not None else "",
        state_kind=kind,
        state_words=words,
        is_grey=number.state is not NumberState.OK,
        facts=tuple(_facts(number)) or _why_none(number),
        explanation=tuple(_explanation(number)),
    )


def headline_cards(summary: AcceptanceSummary, *, adds_up: bool = False) -> list[NumberCard]:
    """Return the six headline numbers of the overview, in the order of reading.

    ``adds_up``: they are of several launches; the rate that an engine prints cannot be added up.
    """
    rate = engine_rate_card(summary.engine_reported_rate)
    if adds_up:
        rate = replace(rate, facts=("of the newest launch only", *rate.facts))
    return [
        number_card("accept-length", "Accept length τ", summary.accept_length),
        number_card("draft-acceptance", "Draft acceptance", summary.draft_acceptance),
        rate,
        number_card("verify-calls", "Verify calls", summary.verify_calls_per_second),
        number_card("throughput", "Generated tokens", summary.generated_tokens_per_second),
        load_card(summary.requests_running, summary.requests_queued),
    ]


def engine_rate_card(rate: EngineRate) -> NumberCard:
    """Return the engine's own rate with its formula, its floor and what it means as strict acceptance."""
    card = number_card("engine-rate", "Engine-reported rate", rate.number)
    formula = f"= {rate.formula}" if rate.formula not in ("", "undetermined") else ""
    facts = list(card.facts)
    if rate.floor is not None:
        facts.insert(0, f"floor 1/D = {number_text(rate.floor, '1')} %")
    if rate.strict_equivalent is not None and rate.includes_bonus:
        facts.insert(0, f"strict {number_text(rate.strict_equivalent, '1')} %")
    bonus = {True: "included", False: "not included", None: "not known"}[rate.includes_bonus]
    return replace(
        card, formula=formula, facts=tuple(facts), explanation=(*card.explanation, ("Bonus token", bonus))
    )


def load_card(running: Number, queued: Number) -> NumberCard:
    """Return running and queued requests in one card; the worse state of the two is shown."""
    order = list(_STATES)
    worse = max(running, queued, key=lambda number: order.index(number.state))
    card = number_card("load", "Running / queued", worse)
    explanation = [("Running", running.definition), ("Queued", queued.definition), ("Source", running.source)]
    is_known = running.value is not None or queued.value is not None
    return replace(
        card,
        text=f"{_load_text(running)} / {_load_text(queued)}" if is_known else MISSING,
        unit="",
        explanation=tuple((term, text) for term, text in explanation if text),
    )


def _load_text(number: Number) -> str:
    return MISSING if number.value is None else count_text(round(number.value, 1))


def _facts(number: Number) -> list[str]:
    facts = []
    if number.low is not None and number.high is not None:
        low, high = (number_text(bound, number.unit) for bound in (number.low, number.high))
        facts.append(f"95 %: {low} to {high}")
    if number.n is not None:
        counted = _N_UNITS.get(number.n_unit, number.n_unit)
        facts.append(f"n = {count_text(number.n)} {counted}".rstrip())
    if number.age_seconds is not None:
        facts.append(age_text(number.age_seconds))
    return facts


def _why_none(number: Number) -> tuple[str, ...]:
    return (number.note,) if number.state is NumberState.NO_DATA and number.note else ()


def _explanation(number: Number) -> list[tuple[str, str]]:
    rows = [
        ("Definition", number.definition),
        ("Source", number.source),
        ("Interval", number.interval_method),
        ("Note", number.note),
    ]
    return [(term, text) for term, text in rows if text]
