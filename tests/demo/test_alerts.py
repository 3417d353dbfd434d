"""The alerts of the demo's story: each in its order with its cause and its end, and no other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.demo.playing import STARTED_MS
from tests.demo.stage import Stage
from tests.support.databases import opened

from specscope_server.alerts.rules.files import read_rules
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.schema import Rule
from specscope_server.demo.alert_rules import (
    HURRIED,
    INTERVAL_SECONDS,
    LEAST_SAMPLE_MS,
    LEAST_WINDOW_MS,
    alerts_file,
)
from specscope_server.demo.session import watch_name
from specscope_server.demo.story import Story

SPEED = 30.0
UNTIL_SECONDS = 318
"""From the wrong layers to normal load after the sweep, by when all is over."""
SCRAPE_SECONDS = 3
VERSIONS = ("0.5.8", "0.5.23")

Change: TypeAlias = tuple[str, str]
"""What changed (rule, and slot or position), and into what."""
DRIFT = tuple(f"norm-drift {slot}" for slot in "012")
RESTART: tuple[Change, ...] = (("configuration-changed", "firing"), ("configuration-changed", "resolved"))
TOLD: dict[str, tuple[Change, ...]] = {
    "0.5.23": (
        *((slot, "firing") for slot in DRIFT),  # the wrong layers …
        ("dead-draft", "firing"),
        ("first-position-low 1", "firing"),
        *RESTART,  # … the right ones,
        ("dead-draft", "resolved"),
        ("first-position-low 1", "resolved"),
        *RESTART,  # the tuned network,
        *RESTART,  # 4 steps of the sweep,
        RESTART[0],  # 3 steps,
        *((slot, "resolved") for slot in DRIFT),  # (it keeps firing for an hour of the story)
        RESTART[1],
        *RESTART,  # 1,
        *RESTART,  # none,
        *RESTART,  # and 2; the 5 at the beginning of the sweep changed nothing
    ),
}
"""All that the story raises, in order. Without histograms, 0.5.8 says nothing of positions."""
TOLD["0.5.8"] = tuple(change for change in TOLD["0.5.23"] if not change[0].startswith("first-position"))
CAUSES = {
    "norm-drift 0": "Slot 0 is the embedding",
    "norm-drift 1": "28 layers too shallow",
    "norm-drift 2": "28 layers too shallow",
    "dead-draft": "below 1.15 tokens/cycle with its whole interval",
    "first-position-low 1": "below 40 % with its whole interval",
}
RESTARTS = (
    "aux_hidden_state_layer_ids", "NCCL_ALGO", "speculative_num_steps 5 → 4", "speculative_num_steps 4 → 3",
    "speculative_num_steps 3 → 1", "speculative_algorithm EAGLE3 → not set",
    "speculative_algorithm not set → EAGLE3",
)  # fmt: skip


def written_out() -> list[dict[str, Any]]:
    """Return the shipped rules as `specscope demo` takes them."""
    return [rule.model_dump(mode="json", by_alias=True) for rule in pack().values()]


@dataclass(frozen=True)
class Moment:
    """A change of an alert, as the page about alerts lists it."""

    server: str
    what: str
    state: str
    alert_id: str
    reason: str


def moments(stage: Stage) -> list[Moment]:
    """Return each fire and each end, in order."""
    history = stage.web.api(
        "/alerts/history", from_=str(STARTED_MS), to=str(stage.now_ms + 1), limit=1000
    )  # fmt: skip
    found = []
    for row in reversed(history["transitions"]):
        labels = row["labels"]
        what = f"{row['rule']} {labels.get('slot', labels.get('position', ''))}".strip()
        found.append(Moment(labels["server"], what, row["to_state"], row["alert_id"] or "", row["reason"]))
    return [moment for moment in found if moment.state in ("firing", "resolved")]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Stage]:
    """Play the whole story on both engines, with alerts as `specscope demo` evaluates them."""
    folder = tmp_path_factory.mktemp("story")
    path, database = folder / "alerts.yaml", folder / "story.sqlite3"
    path.write_text(alerts_file(written_out(), SPEED))
    shutil.copyfile(sqlite_template, database)
    with opened(f"sqlite:///{database}") as engine:
        stage = Stage(engine, Story(SPEED), folder / "spool", SCRAPE_SECONDS, VERSIONS, alerts=path)
        stage.upload_references()
        stage.play(UNTIL_SECONDS, 2 * INTERVAL_SECONDS, stage.alerting.turn)
        yield stage


@pytest.mark.parametrize("version", VERSIONS)
def test_the_story_raises_its_alerts_in_order_and_ends_them(told: Stage, version: str) -> None:
    found = [moment for moment in moments(told) if moment.server == watch_name(version)]
    assert tuple((moment.what, moment.state) for moment in found) == TOLD[version]
    ids = {
        state: [each.alert_id for each in found if each.state == state] for state in ("firing", "resolved")
    }
    assert len(set(ids["firing"])) == len(ids["firing"])
    assert sorted(ids["resolved"]) == sorted(ids["firing"]), "each fire ends once"


@pytest.mark.parametrize("version", VERSIONS)
def test_each_alert_of_the_story_says_why(told: Stage, version: str) -> None:
    fires = [each for each in moments(told) if each.server == watch_name(version) and each.state == "firing"]
    for moment in fires:
        assert CAUSES.get(moment.what, "restarted with another configuration: ") in moment.reason
    restarts = [moment.reason for moment in fires if moment.what == "configuration-changed"]
    for cause, reason in zip(RESTARTS, restarts, strict=True):
        assert cause in reason


def test_nothing_of_the_story_is_left_over(told: Stage) -> None:
    assert {moment.server for moment in moments(told)} == {watch_name(version) for version in VERSIONS}
    listed = told.web.api("/alerts")
    assert listed["health"] == "ok"
    assert told.alerting.last
    assert not told.alerting.last.problems
    assert not [alert for alert in listed["alerts"] if alert["state"] in ("firing", "recovering")]
    assert all(alert["is_demo"] for alert in told.web.api("/alerts", state="resolved")["alerts"])


def times(rule: Rule) -> list[tuple[int, int]]:
    """Return all lengths of time of a rule with the least that is made of them, in ms."""
    conditions = [rule.condition, *getattr(rule.condition, "conditions", [])]
    windows = [
        (window, LEAST_SAMPLE_MS if getattr(each, "on", "") == "interval" else LEAST_WINDOW_MS)
        for each in conditions
        if (window := getattr(each, "window", 0))
    ]
    return [(rule.for_, 0), (rule.keep_firing_for, 0), *windows]


@pytest.mark.parametrize("speed", [0.5, 1.0, 30.0, 10_000.0])
def test_rules_are_hurried_as_the_story_is(speed: float) -> None:
    rules = {rule.name: rule for rule in read_rules(alerts_file(written_out(), speed), "demo").rules}
    assert rules.keys() == pack().keys()
    assert rules.keys() >= HURRIED
    for name, rule in rules.items():
        shipped = pack()[name]
        if speed <= 1 or name not in HURRIED:
            assert rule == shipped
            continue
        for (before, least), (now, _) in zip(times(shipped), times(rule), strict=True):
            assert now == max(round(before / speed), least)
