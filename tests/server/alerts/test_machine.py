"""The state machine of alerts, against a simple model and case by case."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from specscope_server.alerts.rules.reading import Status
from specscope_server.alerts.rules.schema import NoData
from specscope_server.alerts.states.identity import alert_id_of, fingerprint_of
from specscope_server.alerts.states.machine import (
    MISSING,
    ON,
    AlertState,
    State,
    Timing,
    Transition,
    advance,
    held_ms,
    retire,
)

STEP_MS = 10_000
T0 = 1_790_000_000_000
OK, BREACH, NO_DATA, ERROR, GONE = Status.OK, Status.BREACH, Status.NO_DATA, Status.ERROR, None


@dataclass
class Life:
    """An alert that is told one reading after the other, one step apart."""

    timing: Timing = field(default_factory=lambda: Timing(for_ms=20_000, keep_firing_ms=20_000))
    state: AlertState = field(default_factory=lambda: AlertState("f" * 32))
    now_ms: int = T0
    log: list[Transition] = field(default_factory=list)

    def see(self, *statuses: Status | None, step_ms: int = STEP_MS) -> list[str]:
        """Return the states after each reading."""
        found = []
        for status in statuses:
            self.now_ms += step_ms
            self.state, transition = advance(self.state, status, self.now_ms, self.timing, f"saw {status}")
            self.log += [transition] if transition else []
            found.append(self.state.state.value)
        return found


def test_the_whole_way_and_back() -> None:
    life = Life()
    assert life.see(OK, BREACH, BREACH, BREACH) == ["normal", "pending", "pending", "firing"]
    assert life.see(OK, OK, OK, OK) == ["recovering", "recovering", "resolved", "resolved"]
    assert [entry.to_state for entry in life.log] == ["pending", "firing", "recovering", "resolved"]
    fired = life.log[1]
    assert fired.alert_id == alert_id_of("f" * 32, fired.at_ms) == life.log[3].alert_id
    assert fired.reason == "saw breach"


def test_a_breach_that_ends_early_fires_nothing() -> None:
    assert Life().see(BREACH, BREACH, OK, BREACH, BREACH, OK) == [
        "pending", "pending", "normal", "pending", "pending", "normal",
    ]  # fmt: skip


def test_a_breach_during_recovery_is_the_same_fire() -> None:
    life = Life()
    life.see(BREACH, BREACH, BREACH)
    first = life.state.alert_id
    assert life.see(OK, BREACH, OK, OK, OK) == [
        "recovering",
        "firing",
        "recovering",
        "recovering",
        "resolved",
    ]
    assert life.state.alert_id == first
    assert [entry.to_state for entry in life.log].count(State.RESOLVED) == 1


def test_the_next_fire_is_another_one() -> None:
    life = Life(Timing())
    life.see(BREACH)
    first = life.state.alert_id
    assert life.see(OK, BREACH) == ["resolved", "firing"]
    assert life.state.alert_id != first
    assert life.state.resolved_ms is None


@pytest.mark.parametrize("unknown", [NO_DATA, ERROR])
def test_time_in_which_nothing_is_known_counts_for_nothing(unknown: Status) -> None:
    life = Life()
    assert life.see(BREACH, *[unknown] * 5, BREACH, BREACH) == ["pending"] * 7 + ["firing"]
    assert life.see(*[unknown] * 9) == ["firing"] * 9, "it is not over because nothing is known"
    assert life.see(OK, *[unknown] * 5, OK, OK) == ["recovering"] * 7 + ["resolved"]


def test_no_data_and_error_stand_apart() -> None:
    assert Life().see(NO_DATA, ERROR, NO_DATA, OK) == ["no_data", "error", "no_data", "normal"]
    life = Life(Timing())
    assert life.see(BREACH, OK, NO_DATA, ERROR) == ["firing", "resolved", "resolved", "resolved"]


def test_no_data_can_be_an_alert_or_fine() -> None:
    loud = Life(Timing(for_ms=10_000, no_data=NoData.ALERT))
    assert loud.see(NO_DATA, NO_DATA, OK) == ["pending", "firing", "resolved"]
    calm = Life(Timing(no_data=NoData.OK))
    assert calm.see(BREACH, NO_DATA) == ["firing", "resolved"]


def test_a_vanished_series_is_missing_and_not_recovered() -> None:
    life = Life(Timing(missing_ms=20_000))
    assert life.see(BREACH, GONE, BREACH) == ["firing", "recovering", "firing"], (
        "one failed read ends nothing"
    )
    assert life.see(GONE, GONE, GONE) == ["recovering", "recovering", "resolved"]
    assert life.log[-1].reason == MISSING
    assert Life().see(BREACH, GONE) == ["pending", "normal"]
    assert Life().see(NO_DATA, GONE) == ["no_data", "normal"]


def test_a_server_that_was_down_does_not_fire_at_once_when_it_is_back() -> None:
    life = Life()
    life.see(BREACH)
    assert life.see(BREACH, step_ms=3_600_000) == ["pending"], "nobody looked for an hour"
    assert life.see(BREACH, BREACH) == ["pending", "firing"]
    assert life.see(BREACH, step_ms=3_600_000) == ["firing"], "nor does it forget"


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    life = Life(Timing(for_ms=20_000))
    life.see(BREACH, BREACH)
    assert life.see(BREACH, step_ms=-3_600_000) == ["pending"]
    assert life.see(BREACH) == ["firing"]
    first = life.state.alert_id
    life.see(OK, BREACH, BREACH, step_ms=0)
    assert life.see(BREACH, step_ms=20_000) == ["firing"]
    assert life.state.alert_id != first


def test_fires_at_one_and_the_same_time_have_ids_of_their_own() -> None:
    life = Life(Timing())
    life.see(BREACH)
    first = life.state.alert_id
    assert life.see(OK, BREACH, step_ms=0) == ["resolved", "firing"]
    assert life.state.alert_id != first


@pytest.mark.parametrize(
    ("seen", "after"),
    [([BREACH], State.NORMAL), ([BREACH] * 3, State.RESOLVED), ([NO_DATA], State.NORMAL)],
)
def test_a_rule_that_is_turned_off_ends_its_alerts(seen: list[Status], after: State) -> None:
    life = Life()
    life.see(*seen)
    state, transition = retire(life.state, life.now_ms, "the rule was turned off")
    assert state.state is after
    assert transition is not None
    assert transition.reason == "the rule was turned off"
    assert retire(state, life.now_ms, "again") == (state, None)


def test_fingerprints_do_not_depend_on_the_order_of_labels() -> None:
    assert fingerprint_of("r", {"a": "1", "b": "2"}) == fingerprint_of("r", {"b": "2", "a": "1"})
    others = {
        fingerprint_of("r", {"a": "1"}),
        fingerprint_of("q", {"a": "1"}),
        fingerprint_of("r", {"a": "2"}),
    }
    assert len(others) == 3


class Model(RuleBasedStateMachine):
    """A slow model: every interval of the past is kept, and sums are taken over them again."""

    @initialize(for_steps=st.integers(0, 3), keep_steps=st.integers(0, 3), policy=st.sampled_from(NoData))
    def begin(self, for_steps: int, keep_steps: int, policy: NoData) -> None:
        self.timing = Timing(for_steps * STEP_MS, keep_steps * STEP_MS, 2 * STEP_MS, 5 * STEP_MS, policy)
        self.life = Life(self.timing)
        self.run: list[tuple[int, bool]] = []
        """(length of the interval before a reading, whether it counts) since the run began."""
        self.is_on, self.is_counting, self.fires, self.resolves = False, False, 0, 0
        self.began_ms: int | None = None

    @rule(
        status=st.sampled_from([OK, BREACH, BREACH, NO_DATA, ERROR, GONE]),
        steps=st.sampled_from([1, 1, 1, 2, 5, 6, 40]),
    )
    def see(self, status: Status | None, steps: int) -> None:
        self.life.see(status, step_ms=steps * STEP_MS)
        policy = self.timing.no_data
        if status is NO_DATA and policy is not NoData.KEEP:
            status = BREACH if policy is NoData.ALERT else OK
        is_known = status in (OK, BREACH, GONE)
        if self.is_counting:
            self.run.append((steps * STEP_MS, is_known and steps <= 5))
        if is_known:
            self._known(is_breach=status is BREACH, is_gone=status is GONE)

    def _known(self, *, is_breach: bool, is_gone: bool) -> None:
        if is_breach == self.is_on:  # what it is already: a run towards the other side ends
            self.is_counting, self.run = False, []
            self.began_ms = self.began_ms if self.is_on else None
            return
        if is_breach and not self.is_counting:
            self.began_ms = self.life.now_ms
        if not self.is_counting:
            self.is_counting, self.run = True, []
        least_ms = self.timing.for_ms if is_breach else self.timing.keep_firing_ms
        least_ms = max(least_ms, self.timing.missing_ms) if is_gone else least_ms
        if sum(length for length, counts in self.run if counts) >= least_ms:
            self.is_on, self.is_counting, self.run = is_breach, False, []
            self.fires += is_breach
            self.resolves += not is_breach
            self.began_ms = self.began_ms if is_breach else None

    @invariant()
    def it_agrees(self) -> None:
        if not hasattr(self, "life"):
            return
        state = self.life.state.state
        assert (state in ON) == self.is_on
        assert (state in (State.PENDING, State.RECOVERING)) == self.is_counting

    @invariant()
    def its_baseline_stands_still_from_the_first_breach_until_it_is_over(self) -> None:
        if not hasattr(self, "life"):
            return
        state, now_ms = self.life.state, self.life.now_ms
        assert state.breach_since_ms == self.began_ms
        assert (self.began_ms is not None) == (self.is_on or self.is_counting)
        assert held_ms(state, now_ms, now_ms) == self.began_ms
        if self.began_ms is not None:
            age_ms = now_ms - self.began_ms
            assert held_ms(state, now_ms, age_ms + 1) == self.began_ms
            assert held_ms(state, now_ms, age_ms) is None, "it is bounded"

    @invariant()
    def each_fire_has_one_resolve_and_no_resolve_is_without(self) -> None:
        if not hasattr(self, "life"):
            return
        begun = [entry.alert_id for entry in self.life.log if entry.to_state is State.FIRING
                 and entry.from_state is not State.RECOVERING]  # fmt: skip
        ended = [entry.alert_id for entry in self.life.log if entry.to_state is State.RESOLVED]
        assert len(set(begun)) == len(begun) == self.fires
        assert ended == begun[: len(ended)]
        assert len(ended) == self.resolves
        assert len(begun) - len(ended) == self.is_on


TestModel = Model.TestCase
