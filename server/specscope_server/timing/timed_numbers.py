"""Word each headline number about time: value, definition, source, sample size and age."""

from __future__ import annotations

from specscope_server.acceptance.schemas import Number, NumberState
from specscope_server.acceptance.statistics import Ratio
from specscope_server.timing.baseline import BreakEven, PlainSteps
from specscope_server.timing.facts import Facts
from specscope_server.timing.measure import Timed
from specscope_server.timing.phases import Phase
from specscope_server.timing.schemas import Level
from specscope_server.timing.statistics import MIN_CYCLES, per_cycle_ms, relative_change, total

CYCLE_DEFINITIONS = {
    Level.PROBE: "T_c = Σ time of timed cycles, gaps before them included / Σ timed cycles; without prefill",
    Level.DEVICE_TIMER: "T_c = (observed time − idle − prefill on the device) / decode steps",
    Level.GAUGES: "T_c = mean of running × τ / throughput over log windows, prefills between included",
    Level.NONE: "T_c = time of a cycle",
}
NO_VERIFY = "this level of evidence does not tell verify apart"
NO_BASELINE = (
    "no launch of the same model without speculation was measured here at the same batch size; run one, for "
    "some minutes, to learn whether speculation pays"
)
OF_LENGTH_ALONE = "of τ alone; how much τ* varies is not counted"


def number(
    timed: Timed, facts: Facts | None, ratio: Ratio, unit: str, definition: str, note: str = ""
) -> Number:
    """Return a number about cycles; grey when there are few of them."""
    cycles = facts.cycles if facts else None
    is_few = ratio.value is not None and (cycles or 0) < MIN_CYCLES
    track = facts.track if facts else None
    return timed.context.number(
        ratio.value, unit, definition, (), state=NumberState.FEW if is_few else None, n=cycles,
        n_unit="cycles", interval=ratio, note=note or (f"fewer than {MIN_CYCLES} cycles" if is_few else ""),
        as_of_ms=track.newest_ms if track else None, source=track.source if track else "none",
    )  # fmt: skip


def cycle_time(timed: Timed, facts: Facts | None) -> Number:
    """Return T_c."""
    ratio = facts.track.cycle_ms if facts else Ratio(None)
    level = facts.level if facts else Level.NONE
    return number(timed, facts, ratio, "ms", CYCLE_DEFINITIONS[level])


def verify_time(timed: Timed, facts: Facts | None) -> Number:
    """Return T_v."""
    ratio = Ratio(None)
    if facts and Phase.VERIFY in facts.track.cycle:
        ratio = facts.track.phase_ms(Phase.VERIFY)
    definition = "T_v = Σ time of the target's verify forward / Σ cycles"
    return number(timed, facts, ratio, "ms", definition, "" if ratio.value is not None else NO_VERIFY)


def verify_share(timed: Timed, facts: Facts | None) -> Number:
    """Return T_v / T_c."""
    ratio = Ratio(None)
    if facts and Phase.VERIFY in facts.track.cycle:
        track = facts.track
        whole = total(track.cycle_seconds)
        share = per_cycle_ms(track.cycle[Phase.VERIFY], track.cycle_seconds)
        low, high = (None if bound is None else bound / 1_000 for bound in (share.low, share.high))
        ratio = Ratio(total(track.cycle[Phase.VERIFY]) / whole, low, high, share.method) if whole else ratio
    definition = "Σ verify / Σ cycle time"
    return number(timed, facts, ratio, "1", definition, "" if ratio.value is not None else NO_VERIFY)


def plain_time(
    timed: Timed, facts: Facts | None, plain: PlainSteps | None, even: BreakEven | None, now_ms: int
) -> Number:
    """Return T_ar where the batch sizes of both sides meet, with its age."""
    definition = "T_ar = time of a plain decode step, over the batch sizes of this window"
    ratio = even.plain if even else Ratio(None)
    found = number(timed, facts, ratio, "ms", definition)
    if plain is None:
        return found.model_copy(update={"source": "none", "note": NO_BASELINE, "n": None})
    note = plain.note if even else why_unknown(plain)
    if even is not None and even.covered < 1:
        note = f"{note}; {100 * even.covered:.0f} % of the cycles ran at batch sizes that it met"
    age = max(now_ms - plain.launch.last_seen_ms, 0) / 1_000
    changes = {"n": plain.cycles, "age_seconds": age, "note": note, "source": plain.note}
    return found.model_copy(update=changes)


def why_unknown(plain: PlainSteps | None) -> str:
    """Return why T_c cannot be set against T_ar."""
    if plain is None:
        return NO_BASELINE
    return f"{plain.note} was measured, but at other batch sizes than most of this window's cycles"


def break_even_length(
    timed: Timed, facts: Facts | None, plain: PlainSteps | None, even: BreakEven | None
) -> Number:
    """Return τ* = T_c / T_ar."""
    definition = "τ* = T_c / T_ar at the same batch sizes: below it, speculation costs time"
    note = "" if even else why_unknown(plain)
    return number(timed, facts, _quotient(even), "tokens/cycle", definition, note)


def speed_up(timed: Timed, facts: Facts | None, plain: PlainSteps | None, even: BreakEven | None) -> Number:
    """Return S = τ / τ*."""
    length = Ratio(facts.length.value, facts.length.low, facts.length.high) if facts else Ratio(None)
    ratio = times_faster(length, _quotient(even))
    definition = "S = τ / τ* = τ · T_ar / T_c, of decoding; 1 = as fast as without speculation"
    return number(timed, facts, ratio, "×", definition, "" if even else why_unknown(plain))


def times_faster(length: Ratio, even: Ratio) -> Ratio:
    """Return τ / τ* with an interval from both; where they cannot be joined, from that of τ alone.

    That is narrower than the truth. Without it, τ of a few requests, however uncertain, would be taken as
    exact as soon as one rare batch size was met in too few scrapes to tell how much its cycles vary.
    """
    if not length.value or not even.value:
        return Ratio(None)
    value = length.value / even.value
    bounds = relative_change(even, length)
    if bounds.low is not None and bounds.high is not None:
        return Ratio(value, 1 + bounds.low, 1 + bounds.high, bounds.method)
    if length.low is not None and length.high is not None:
        return Ratio(value, length.low / even.value, length.high / even.value, OF_LENGTH_ALONE)
    return Ratio(value)


def _quotient(even: BreakEven | None) -> Ratio:
    if even is None:
        return Ratio(None)
    change = relative_change(even.plain, even.cycle)
    values = (None if bound is None else 1 + bound for bound in (change.value, change.low, change.high))
    value, low, high = values
    return Ratio(value, low, high, change.method)


def rate(timed: Timed, facts: Facts | None) -> Number:
    """Return tokens per second of active time."""
    definition = "tokens that decode cycles emitted / active time, all schedulers together"
    return number(timed, facts, Ratio(facts.rate if facts else None), "tokens/s", definition)


def batch(timed: Timed, facts: Facts | None) -> Number:
    """Return B."""
    definition = "B = emitted tokens / (τ × cycles): requests in a cycle, on average"
    return number(timed, facts, Ratio(facts.batch if facts else None), "requests", definition)
