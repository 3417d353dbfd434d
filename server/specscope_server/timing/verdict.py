"""The sentence that comes first: where the time goes, and what a millisecond of it is worth."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_server.acceptance.schemas import Check, Number, NumberState, Verdict
from specscope_server.timing.checks import unattributed_share
from specscope_server.timing.facts import Facts
from specscope_server.timing.measure import Timed
from specscope_server.timing.phases import TITLES, Phase
from specscope_server.timing.schemas import Level, Sensitivity
from specscope_server.timing.statistics import MIN_CYCLES, total

DARK = 0.5
"""From this unattributed share of the cycle on, nothing can be said about where it goes."""
PAYS, LOSES = 1.02, 0.98
NO_TIMES = (
    "The engine publishes no rate while it decodes, or none was read. Its gauges need --enable-metrics; the "
    "Sources page says what fails."
)


def judge(
    timed: Timed,
    facts: Facts | None,
    speed_up: Number,
    sensitivity: Sequence[Sensitivity],
    checks: Sequence[Check],
) -> Verdict:
    """Return the verdict of a summary whose parts are there."""
    if facts is None:
        return _without(timed)
    reasons = [*_reasons(facts, speed_up), *_cautions(timed, checks)]
    if facts.cycles < MIN_CYCLES:
        return Verdict(state="unknown", headline="Too few cycles to say where the time goes", reasons=reasons)
    headline = _headline(facts, sensitivity)
    if timed.context.is_stale:
        return Verdict(
            state="unknown", headline=f"Nothing was read lately. Before: {headline}", reasons=reasons
        )
    state = _state(facts, speed_up, checks)
    return Verdict(state=state, headline=headline, reasons=reasons)


def _without(timed: Timed) -> Verdict:
    if not timed.launches:
        reason = "Nothing was read from this server in this range. The Sources page says what fails."
        return Verdict(state="unknown", headline="No data in this range", reasons=[reason])
    refused = [track.problem for one in timed.launches for track in one.tracks.values() if track.problem]
    if refused:
        return Verdict(state="unknown", headline="The times contradict each other", reasons=refused[:3])
    if timed.context.measured.ends_idle:
        return Verdict(state="idle", headline="Idle: no cycles in this range", reasons=[])
    return Verdict(state="unknown", headline="No times yet", reasons=[NO_TIMES])


def _headline(facts: Facts, sensitivity: Sequence[Sensitivity]) -> str:
    cycle = facts.cycle_ms or 0.0
    what = "step" if facts.track.is_plain else "cycle"
    if facts.level is Level.GAUGES or unattributed_share(facts) > DARK:
        return f"A {what} takes {cycle:.1f} ms; what it is made of cannot be seen yet"
    shares = {
        phase: total(value) for phase, value in facts.track.cycle.items() if phase is not Phase.UNATTRIBUTED
    }
    largest = max(shares, key=lambda phase: shares[phase])
    share = shares[largest] / total(facts.track.cycle_seconds)
    if largest is Phase.ROUND:
        return (
            f"A cycle takes {cycle:.1f} ms, {100 * share:.0f} % of it on the device; this engine version "
            "does not say what for"
        )
    title = TITLES[largest]
    head = f"{title[0].upper()}{title[1:]} takes {100 * share:.0f} % of the {what}"
    gain = next((row for row in sensitivity if row.name == largest), None)
    if gain is None or gain.tokens_per_second is None or gain.relative is None:
        return head
    return (
        f"{head}: {gain.change.removesuffix(' per cycle')} of it would give "
        f"+{gain.tokens_per_second:.1f} tok/s (+{100 * gain.relative:.1f} %)"
    )


def _reasons(facts: Facts, speed_up: Number) -> list[str]:
    found = []
    active = facts.active_ms
    if facts.rate is not None and facts.batch is not None and active is not None and facts.length.value:
        found.append(
            f"T_c = {facts.cycle_ms or 0:.2f} ms; {facts.batch:.1f} requests × τ {facts.length.value:.2f} in "
            f"{active:.2f} ms of active time per cycle give {facts.rate:.0f} tokens/s."
        )
    if speed_up.value is not None:
        words = "faster" if speed_up.value >= 1 else "slower"
        found.append(
            f"Decoding is {100 * abs(speed_up.value - 1):.0f} % {words} than without speculation "
            f"({speed_up.value:.2f} ×), at the same batch sizes."
        )
    elif not facts.track.is_plain:
        found.append(f"Whether that pays is not known: {speed_up.note}.")
    rest = unattributed_share(facts)
    if facts.level is not Level.GAUGES and rest > 0:
        found.append(f"{100 * rest:.1f} % of the cycle is unattributed.")
    return found


def _cautions(timed: Timed, checks: Sequence[Check]) -> list[str]:
    failed = [
        f"Self-check fails: {check.name} ({check.message})." for check in checks if check.passed is False
    ]
    if len(timed.launches) > 1:
        failed.append(f"This range mixes {len(timed.launches)} launches; choose one to see it alone.")
    return failed


def _state(facts: Facts, speed_up: Number, checks: Sequence[Check]) -> str:
    if any(check.passed is False for check in checks):
        return "warn"
    if speed_up.value is None or speed_up.state is NumberState.FEW:
        return "unknown" if facts.level is Level.GAUGES else "ok"
    return "ok" if speed_up.value >= PAYS else "bad" if speed_up.value < LOSES else "warn"
