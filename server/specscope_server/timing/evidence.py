"""The levels of evidence of a window: which are there and used, how to get the others, do they agree."""

from __future__ import annotations

from itertools import combinations

from specscope_server.acceptance.schemas import Check
from specscope_server.acceptance.statistics import Ratio
from specscope_server.timing.measure import LEVELS, Timed
from specscope_server.timing.phases import Phase
from specscope_server.timing.schemas import BlindSpot, EvidenceLevel, Level
from specscope_server.timing.statistics import MIN_CYCLES, total
from specscope_server.timing.tracks import Track, added

LETTERS = {Level.PROBE: "c", Level.DEVICE_TIMER: "b", Level.GAUGES: "a"}
TITLES = {
    Level.PROBE: "the probe inside the engine",
    Level.DEVICE_TIMER: "SGLang's device timer",
    Level.GAUGES: "rates",
    Level.NONE: "nothing",
}
REMEDIES = {
    Level.PROBE: "pip install specscope in SGLang's environment, and start it with SPECSCOPE_PROBE=1 and "
    "--enable-metrics",
    Level.DEVICE_TIMER: "start SGLang 0.5.8 or later with SGLANG_ENABLE_METRICS_DEVICE_TIMER=1 and "
    "--enable-metrics",
    Level.GAUGES: "start SGLang with --enable-metrics, or import its log",
}
NOTES = {
    Level.PROBE: "Phases of timed cycles, added up inside the engine; warm-up is kept apart.",
    Level.DEVICE_TIMER: "Device seconds by forward pass; what the device timer, the idle counter and the "
    "scheduler's stages leave over is unattributed.",
    Level.GAUGES: "T_c = running × τ / throughput of each of the engine's log windows. What a cycle is made "
    "of is not known.",
    Level.NONE: "Nothing in this range says how long a cycle takes.",
}
AGREEMENT, RATES_AGREEMENT = 0.05, 0.2
"""Two levels may differ by this share before they are said to disagree; rates by more where prefills cannot
be told from cycles."""


def level_items(timed: Timed) -> list[EvidenceLevel]:
    """Return what each level says, best first."""
    return [_item(timed, level) for level in LEVELS]


def _any_track(timed: Timed, level: Level) -> Track | None:
    """Return the tracks of a level, also if they cannot be believed."""
    found = [one.tracks[level] for one in timed.launches if level in one.tracks]
    return timed.track(level) or (added(found) if found else None)


def _item(timed: Timed, level: Level) -> EvidenceLevel:
    track = _any_track(timed, level)
    if track is None:
        return EvidenceLevel(
            level=level, letter=LETTERS[level], title=TITLES[level], state="absent", clock="", overlap="",
            cycles=None, active_ms=None, active_low=None, active_high=None, verify_ms=None, note="",
            remedy=REMEDIES[level],
        )  # fmt: skip
    active, verify = track.active_ms, track.phase_ms(Phase.VERIFY)
    state = "refused" if track.problem else "used" if level is timed.level else "present"
    return EvidenceLevel(
        level=level, letter=LETTERS[level], title=TITLES[level], state=state, clock=track.clock,
        overlap=track.overlap, cycles=total(track.cycles), active_ms=active.value, active_low=active.low,
        active_high=active.high, verify_ms=verify.value if Phase.VERIFY in track.cycle else None,
        note=". ".join(filter(None, (track.problem, *track.notes))), remedy="",
    )  # fmt: skip


def evidence_note(timed: Timed) -> str:
    """Return what the numbers are made from, and which launches are left out for it."""
    level = timed.level
    track = timed.track(level)
    notes = [NOTES[level], *(f"{note[0].upper()}{note[1:]}." for note in (track.notes if track else ()))]
    having, alike = len(timed.of_level(level)), len(timed.alike(level))
    lacking = sum(bool(one.tracks) for one in timed.launches) - having
    if lacking > 0:
        notes.append(f"{lacking} of {len(timed.launches)} launches lack it and are left out.")
    if having > alike:
        kind = "speculate" if track and track.is_plain else "do not speculate"
        notes.append(f"Launches that {kind} ({having - alike} here) are left out of means over cycles.")
    return " ".join(notes)


def agreement_checks(timed: Timed) -> list[Check]:
    """Compare the levels with each other, on cycles and on verify; both numbers are in the message."""
    found = []
    for one, other in combinations([level for level in LEVELS if timed.track(level)], 2):
        first, second = timed.track(one), timed.track(other)
        assert first is not None
        assert second is not None
        found.append(_agree(f"{TITLES[one]} and {TITLES[other]} agree on the cycle", first, second, None))
        if Phase.VERIFY in first.cycle and Phase.VERIFY in second.cycle:
            name = f"{TITLES[one]} and {TITLES[other]} agree on verify"
            found.append(_agree(name, first, second, Phase.VERIFY))
    return found or [
        Check(name="levels of evidence agree", passed=None, message="fewer than two are present")
    ]


def _agree(name: str, first: Track, second: Track, phase: Phase | None) -> Check:
    a, b = _lengths(first, second, phase)
    if a.value is None or b.value is None:
        return Check(name=name, passed=None, message="one of them says nothing")
    words = f"{a.value:.2f} ms {_interval(a)} and {b.value:.2f} ms {_interval(b)}"
    if min(total(first.cycles), total(second.cycles)) < MIN_CYCLES:
        return Check(name=name, passed=None, message=f"{words}; too few cycles to compare")
    is_loose = not (first.tells_cycles and second.tells_cycles)
    allowed = RATES_AGREEMENT if is_loose else AGREEMENT
    apart = abs(a.value - b.value) > allowed * max(a.value, b.value)
    return Check(name=name, passed=not apart or _touch(a, b), message=words)


def _lengths(first: Track, second: Track, phase: Phase | None) -> tuple[Ratio, Ratio]:
    """Return what is compared: T_c where both tell it alike, else active time per cycle.

    The device timer leaves what it does not explain in the cycle, also what lies between cycles.
    """
    if phase is not None:
        return first.phase_ms(phase), second.phase_ms(phase)
    is_of_cycles = first.level is not Level.DEVICE_TIMER and second.level is Level.GAUGES
    if is_of_cycles and second.tells_cycles:
        return first.cycle_ms, second.cycle_ms
    return first.active_ms, second.active_ms


def _interval(ratio: Ratio) -> str:
    return "" if ratio.low is None or ratio.high is None else f"({ratio.low:.2f} … {ratio.high:.2f})"


def _touch(a: Ratio, b: Ratio) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.low <= b.high and b.low <= a.high


def blind_spots(timed: Timed) -> list[BlindSpot]:
    """Return what this window cannot show, with the remedy."""
    track = timed.track(timed.level)
    if track is None:
        return [BlindSpot(what="how long a cycle takes", remedy=REMEDIES[Level.GAUGES])]
    found = []
    inside = set(track.cycle)
    if inside == {Phase.UNATTRIBUTED}:
        found.append(BlindSpot(what="what a cycle is made of", remedy=REMEDIES[Level.DEVICE_TIMER]))
    if Phase.ROUND in inside:
        found.append(
            BlindSpot(
                what="draft, verify and draft-extend apart",
                remedy="0.5.15 and later time them one by one; in this version the probe does",
            )
        )
    if Phase.SAMPLING not in inside and not track.is_plain:
        what = "sampling, verify preparation, and times by exact batch size"
        found.append(BlindSpot(what=what, remedy=REMEDIES[Level.PROBE]))
    found.append(
        BlindSpot(
            what="communication, experts and attention inside verify",
            remedy="a profiler trace: its kernels are told apart by class",
        )
    )
    return found
