"""Self-checks, and the verdict in words: calm, with reasons, and silent about what is not known (pure)."""

from __future__ import annotations

from specscope_server.acceptance.context import Context
from specscope_server.acceptance.doubts import choice_notes, comparable, contradiction
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.schemas import (
    AcceptanceSummary,
    Check,
    EngineRate,
    Evidence,
    Number,
    NumberState,
    Verdict,
)
from specscope_server.acceptance.statistics import MIN_CYCLES, MIN_WINDOWS

DEAD_LENGTH = 1.15
"""Below this, fewer than 15 % of cycles keep even one draft: draft and target do not belong together."""
WEAK_LENGTH = 1.5
AGREEMENT = 0.15
"""Gauges see windows at scrapes, counters finished requests: they may differ by this share of τ − 1 + 0.1."""

NO_BASELINE = "Whether it pays is not known: there is no baseline (the same load without speculation)."
VLLM_UNCOUNTED = (
    "vLLM counted no drafts in this range: speculation is off in this launch, or its V0 engine runs, whose "
    "counters count nothing. The Sources page says which."
)
DEAD_DRAFT = (
    "Check that the draft gets the hidden states it was trained on: the captured layers (aux layer ids), the "
    "target model it was trained for, and its vocabulary map."
)


def checks(
    context: Context, length: Number, rate: EngineRate, histograms: tuple[int, int] | None
) -> list[Check]:
    """Return every self-check; ``passed`` None = cannot be checked here."""
    return [
        _length_check(context.measured, length),
        _accepted_check(context.measured),
        _rate_check(context.measured, rate),
        _ranks_check(context),
        _agreement_check(context.measured),
        _histogram_check(histograms),
    ]


def _length_check(measured: Measured, length: Number) -> Check:
    if measured.evidence is Evidence.NONE:
        return Check(name="τ ≥ 1", passed=None, message="no accept length in this range")
    if contradiction(measured):
        return Check(name="τ ≥ 1", passed=None, message=length.note)
    passed = length.value is not None and length.value >= 1 - 1e-9
    message = f"τ = {length.value:.3f}" if length.value is not None else length.note
    return Check(name="τ ≥ 1", passed=passed, message=message)


def _accepted_check(measured: Measured) -> Check:
    name = "accepted ≤ proposed"
    accepted, proposed = measured.counters.accepted, measured.counters.proposed
    if measured.evidence is Evidence.REQUEST_HISTOGRAMS and measured.requests:
        accepted, proposed = measured.requests.accepted, measured.requests.proposed
    if accepted is None or proposed is None:
        return Check(name=name, passed=None, message="accepted or proposed drafts are not counted here")
    passed = -1e-9 <= accepted <= proposed + 1e-9
    return Check(name=name, passed=passed, message=f"{accepted:.0f} of {proposed:.0f} drafts")


def _rate_check(measured: Measured, rate: EngineRate) -> Check:
    name = "engine's rate fits its version's formula"
    decision = measured.rate_decision
    if decision is None:
        return Check(name=name, passed=None, message="this engine printed no rate in this range")
    if decision.formula is None:
        return Check(name=name, passed=False if decision.contradicts else None, message=decision.reason)
    return Check(name=name, passed=True if decision.is_checked else None, message=decision.reason)


def _ranks_check(context: Context) -> Check:
    name = "every expected rank reports"
    found = context.coverage
    if context.rank is not None:
        return Check(name=name, passed=None, message="only one rank was asked for")
    if found is None:
        return Check(name=name, passed=None, message="the engine did not say its parallel sizes")
    message = f"{found.text} ({found.note})" if found.note else found.text
    return Check(name=name, passed=found.is_complete, message=message)


def _agreement_check(measured: Measured) -> Check:
    """Compare launch by launch: over several, gauges weigh by time and counters by cycles.

    Sparse traffic is told by few requests, which the two do not weigh alike: what lies within the counters'
    interval, or near it, is no contradiction.
    """
    name = "gauges agree with counters"
    found = [
        (alone, *lengths)
        for data in comparable(measured).counted
        if (lengths := _both_lengths(alone := Measured(measured.window, [data], None)))
    ]
    if not found:
        return Check(name=name, passed=None, message="only one of the two is present")
    told = [(gauge, counter, _gap(alone, gauge)) for alone, gauge, counter in found if _is_enough(alone)]
    if not told:
        return Check(name=name, passed=None, message="too few cycles to compare")
    gauge, counter, gap = max(told, key=lambda one: one[2] - AGREEMENT * abs(one[1] - 1))
    passed = gap <= AGREEMENT * abs(counter - 1) + 0.1
    where = f", in the launch of {len(told)} where they differ most" if len(told) > 1 else ""
    message = f"τ {gauge:.2f} from gauges, {counter:.2f} from counters{where}"
    return Check(name=name, passed=passed, message=message)


def _gap(measured: Measured, gauge: float) -> float:
    """Return how far the gauges' τ lies outside the interval of the counters' (their value, without one)."""
    found = measured.counter_length
    assert found.value is not None
    low = found.value if found.low is None else min(found.low, found.value)
    high = found.value if found.high is None else max(found.high, found.value)
    return max(low - gauge, gauge - high, 0.0)


def _both_lengths(measured: Measured) -> tuple[float, float] | None:
    gauge, counter = measured.counted_gauge_length[0], measured.counter_length.value
    return None if gauge is None or counter is None else (gauge, counter)


def _is_enough(measured: Measured) -> bool:
    return measured.counted_gauge_length[1] >= MIN_WINDOWS and measured.counters.calls >= MIN_CYCLES


def _histogram_check(histograms: tuple[int, int] | None) -> Check:
    name = "Σh = verify calls"
    if histograms is None:
        return Check(name=name, passed=None, message="no request reported a histogram in this range")
    agreeing, checked = histograms
    return Check(
        name=name, passed=agreeing == checked, message=f"{agreeing} of the newest {checked} requests agree"
    )


def judge(context: Context, summary: AcceptanceSummary) -> Verdict:
    """Return the verdict for a summary whose numbers and checks are there."""
    length = summary.accept_length
    if length.value is None:
        return _without_length(context, length)
    reasons = [_how_many(summary), *_cautions(context, summary), NO_BASELINE]
    if length.state is NumberState.STALE:
        age = f"{length.age_seconds:.0f}" if length.age_seconds is not None else "?"
        return Verdict(
            state="unknown",
            headline=f"Nothing was read for {age} s; the last known state is shown",
            reasons=reasons,
        )
    if length.state is NumberState.FEW:
        return Verdict(
            state="unknown", headline="Too few cycles to say whether speculation works", reasons=reasons
        )
    state, headline = _by_length(length.value)
    if state == "bad":
        reasons.insert(1, DEAD_DRAFT)
    if length.state is NumberState.IDLE and state == "ok":
        return Verdict(
            state="idle",
            headline="Idle now; speculation worked when last active",
            reasons=reasons,
        )
    if state == "ok" and any(check.passed is False for check in summary.checks):
        state, headline = "warn", f"{headline}, but a self-check fails"
    return Verdict(state=state, headline=headline, reasons=reasons)


def _without_length(context: Context, length: Number) -> Verdict:
    if length.state is NumberState.UNDETERMINED:
        return Verdict(
            state="unknown", headline="The engine's counts contradict each other", reasons=[length.note]
        )
    data = context.newest
    if data is None:
        reason = "Nothing was read from this server in this range. The Sources page says what fails."
        return Verdict(state="unknown", headline="No data in this range", reasons=[reason])
    if data.is_plain:
        reason = "The server was launched without --speculative-algorithm."
        return Verdict(state="unknown", headline="Speculation is off", reasons=[reason])
    if data.launch.engine == "vllm" and not context.measured.ends_idle:
        return Verdict(state="unknown", headline="No drafts were counted", reasons=[VLLM_UNCOUNTED])
    if context.measured.ends_idle:
        return Verdict(
            state="idle", headline="Idle: no cycles in this range", reasons=["No request was decoded."]
        )
    reason = "The engine prints an accept length only after its first window of decode steps (40 by default)."
    return Verdict(state="unknown", headline="No accept length yet", reasons=[reason])


def _by_length(length: float) -> tuple[str, str]:
    if length < DEAD_LENGTH:
        return "bad", "Almost no draft is right"
    if length < WEAK_LENGTH:
        return "warn", "Few drafts are right"
    return "ok", "Speculation works"


def _how_many(summary: AcceptanceSummary) -> str:
    text = f"A cycle emits {summary.accept_length.value:.2f} tokens on average"
    strict = summary.draft_acceptance.value
    if strict is None:
        return f"{text}."
    return f"{text}; {100 * strict:.1f} % of the proposed drafts are accepted."


def _cautions(context: Context, summary: AcceptanceSummary) -> list[str]:
    found = [
        f"Self-check fails: {check.name} ({check.message})."
        for check in summary.checks
        if check.passed is False
    ]
    found.extend(choice_notes(context.measured))
    if len(context.measured.launches) > 1:
        count = len(context.measured.launches)
        found.append(f"This range mixes {count} launches; choose one to see it alone.")
    if summary.accept_length.note:
        note = summary.accept_length.note
        found.append(f"{note[0].upper()}{note[1:]}.")
    return found
