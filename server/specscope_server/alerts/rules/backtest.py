"""What a rule would have said of the past: the same conditions, the same states, over history.

The range is read in chunks of some hours, as finely as the live evaluation reads, and judged at instants that
are ``step`` apart. So a fire may be found up to a step late, and one shorter than a step may be missed; the
answer says how long a step was. While the rule would have been pending or fired, its baseline stands still,
as it does live; a breach that goes on already at the beginning of the range is taken to begin there. Work is
bounded by instants and by a time limit: an answer that ran into it covers the newest part, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.evaluate import watched
from specscope_server.alerts.rules.holding import HeldReads, held_needs, held_view, moves
from specscope_server.alerts.rules.judge_rules import Reads, views
from specscope_server.alerts.rules.judging import ABSENT, BREACH
from specscope_server.alerts.rules.reading import LabelKey, Reading
from specscope_server.alerts.rules.reads import Frame, Need
from specscope_server.alerts.rules.schema import Rule, StoredRule
from specscope_server.alerts.rules.views import RuleView, status_of
from specscope_server.alerts.states.identity import fingerprint_of
from specscope_server.alerts.states.machine import ON, AlertState, State, Timing, advance, held_ms
from specscope_server.kit.signal import Target
from specscope_server.kit.web.state import AppState

CHUNK_MS = 6 * 3_600_000
MAX_INSTANTS = 1_500
MIN_STEP_MS = 10_000
MAX_FIRES = 500
TIME_LIMIT_SECONDS = 20.0
GAP_MS = 300_000


@dataclass(slots=True)
class Fire:
    """One time that it would have fired."""

    labels: dict[str, str]
    pending_ms: int
    fired_ms: int
    resolved_ms: int | None
    """None = it would still fire at the end."""
    peak: Reading
    """The reading that is furthest from what is fine: the most extreme value."""


@dataclass(slots=True)
class Backtest:
    """The answer."""

    from_ms: int
    to_ms: int
    step_ms: int
    instants: int
    fires: list[Fire]
    pending_only: int
    """How often it began to breach, and was over before it would have fired."""
    counts: dict[str, int]
    """Status → label sets × instants."""
    covered_from_ms: int
    """Later than ``from_ms`` when the time limit cut the answer short."""
    is_limited: bool
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Track:
    """The state machine of one label set, and what it went through."""

    key: LabelKey
    state: AlertState
    pending_ms: int = 0
    fire: Fire | None = None


def step_of(from_ms: int, to_ms: int, evaluate_every_ms: int) -> int:
    """Return the distance of instants: that of live evaluation, longer where the range is long."""
    span_ms = to_ms - from_ms
    wanted = max(evaluate_every_ms, MIN_STEP_MS, -(-span_ms // MAX_INSTANTS))
    return -(-wanted // 1_000) * 1_000


def backtest(
    session: Session,
    state: AppState,
    rule: Rule,
    from_ms: int,
    to_ms: int,
    evaluate_every_ms: int,
    servers: Sequence[Target] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Backtest:
    """Return when the rule would have fired in (from, to]."""
    step_ms = step_of(from_ms, to_ms, evaluate_every_ms)
    count = max((to_ms - from_ms) // step_ms, 1)
    times = to_ms - step_ms * np.arange(count - 1, -1, -1, dtype=np.int64)
    stored = StoredRule.model_construct(rule=rule, version=0, origin="api", enabled=True)
    chosen = tuple(servers) if servers is not None else watched(session)
    began, problems = clock(), list[str]()
    chunks: list[tuple[RuleView, Reads]] = []
    for part in reversed(_chunks(times, step_ms)):  # the newest first: it matters most when time runs out
        if chunks and clock() - began > TIME_LIMIT_SECONDS:
            break
        frame = Frame(chosen, part, step_ms, int(part[-1]), state)
        [view], reads = views(session, frame, [stored])
        chunks.append((view, reads))
    chunks.reverse()
    covered = int(chunks[0][0].frame.times_ms[0]) - step_ms
    found = _Replay(rule, step_ms)
    for view, reads in chunks:
        problems += [*reads.problems, *found.play(view, reads)]
    return Backtest(
        from_ms, to_ms, step_ms, sum(len(view.frame.times_ms) for view, _ in chunks), found.fires[:MAX_FIRES],
        found.pending_only, found.counts, covered, covered > int(times[0]) - step_ms
        or len(found.fires) > MAX_FIRES, sorted(set(problems))[:20],
    )  # fmt: skip


def _chunks(
    times: np.ndarray[tuple[int], np.dtype[np.int64]], step_ms: int
) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    size = max(CHUNK_MS // step_ms, 1)
    return [times[start : start + size] for start in range(0, len(times), size)]


class _Verdicts:
    """What a rule says of one label set in one chunk, whatever its baseline stands still at."""

    def __init__(self, view: RuleView, reads: HeldReads, key: LabelKey) -> None:
        self._view, self._reads, self._key = view, reads, key
        self._condition = view.stored.rule.condition
        self._moves = moves(self._condition)
        self._known: dict[tuple[Need, ...], tuple[RuleView, int | None]] = {}

    def at(self, held_ms: int | None) -> tuple[RuleView, int | None]:
        """Return the view, and the row of the label set in it; None = there is none."""
        held_ms = held_ms if self._moves else None
        needs = () if held_ms is None else held_needs(self._condition, held_ms)
        if needs not in self._known:
            view = self._view
            if held_ms is not None:
                view = held_view(view, self._reads, self._key, held_ms)
            self._known[needs] = view, view.places.get(self._key)
        return self._known[needs]


class _Replay:
    """Runs the state machine of every label set through the verdicts."""

    def __init__(self, rule: Rule, step_ms: int) -> None:
        self.timing = Timing(
            rule.for_, rule.keep_firing_for, 2 * step_ms, max(GAP_MS, 5 * step_ms), rule.no_data
        )
        self.rule = rule
        self.tracks: dict[LabelKey, _Track] = {}
        self.fires: list[Fire] = []
        self.pending_only = 0
        self.counts: dict[str, int] = {}

    def play(self, view: RuleView, reads: Reads) -> list[str]:
        """Take one chunk, instant by instant; return what could not be read."""
        codes, keys, held = view.view.codes, view.view.keys, HeldReads(reads)
        for key in keys:
            if key not in self.tracks:
                self.tracks[key] = _Track(key, AlertState(fingerprint_of(self.rule.name, dict(key))))
        rows = {key: row for row, key in enumerate(keys)}
        for key, track in self.tracks.items():
            row = rows.get(key)
            quiet = (
                row is not None and not (codes[row] == BREACH).any() and self.rule.no_data.value != "alert"
            )
            if track.state.state in (State.NORMAL, State.RESOLVED, State.NO_DATA) and (row is None or quiet):
                self._count([] if row is None else codes[row])  # nothing can happen here
                continue
            verdicts = _Verdicts(view, held, key)
            times = enumerate(view.frame.times_ms.tolist())
            self._count([self._step(track, verdicts, point, now_ms) for point, now_ms in times])
        return held.problems

    def _count(self, codes: ArrayLike) -> None:
        for code, times in zip(*np.unique(codes, return_counts=True), strict=True):
            if code != ABSENT:
                name = status_of(int(code)).value
                self.counts[name] = self.counts.get(name, 0) + int(times)

    def _step(self, track: _Track, verdicts: _Verdicts, point: int, now_ms: int) -> int:
        """Take one instant; return what was found at it."""
        view, row = verdicts.at(held_ms(track.state, now_ms, self.rule.baseline_hold))
        code = ABSENT if row is None else int(view.view.codes[row, point])
        status = None if code == ABSENT else status_of(code)
        before = track.state.state
        track.state, _ = advance(track.state, status, now_ms, self.timing)
        after = track.state.state
        if after is State.PENDING and before is not State.PENDING:
            track.pending_ms = now_ms
        if before is State.PENDING and after not in (State.PENDING, *ON):
            self.pending_only += 1
        if after in ON and before not in ON:
            assert row is not None
            began = track.pending_ms if before is State.PENDING else now_ms
            track.fire = Fire(dict(track.key), began, now_ms, None, view.reading(row, point))
            self.fires.append(track.fire)
        if track.fire is not None and after in ON and code == BREACH and row is not None:
            self._peak(track.fire, view, row, point)
        if before in ON and after not in ON and track.fire is not None:
            track.fire.resolved_ms, track.fire = now_ms, None
        return code

    def _peak(self, fire: Fire, view: RuleView, row: int, point: int) -> None:
        reading = view.reading(row, point)
        if reading.value is None or fire.peak.value is None:
            return
        downward = is_downward(self.rule)
        if (reading.value < fire.peak.value) if downward else (reading.value > fire.peak.value):
            fire.peak = reading


def is_downward(rule: Rule) -> bool:
    """Tell whether a low value is what the rule is about (of several conditions, the first)."""
    condition = rule.condition
    while getattr(condition, "conditions", None):
        condition = condition.conditions[0]  # type: ignore[attr-defined]
    return any(
        getattr(condition, name, None) not in (None, False) for name in ("below", "drop")
    ) or getattr(condition, "direction", "") == "down"  # fmt: skip
