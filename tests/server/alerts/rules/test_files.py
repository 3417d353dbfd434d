"""Rules in YAML: what is read, what is refused, and that every message names line, rule, field and remedy."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.alerts.rules.durations import read_duration, write_duration
from specscope_server.alerts.rules.files import AlertsFileError, read_rules
from specscope_server.alerts.rules.problems import MAX_PROBLEMS, RuleError, read_rule
from specscope_server.kit.yaml_text import MAX_BYTES, YamlError, read_yaml

GOOD = """\
rules:
  - name: low
    title: Acceptance is low
    condition:
      kind: threshold
      signal: acceptance.accept_length
      below: 1.8
      on: interval
    for: 10m
channels: []
"""


def problems(text: str) -> list[str]:
    with pytest.raises(AlertsFileError) as caught:
        read_rules(text, "alerts.yaml")
    return list(caught.value.problems)


def test_a_file_is_read_and_on_stays_a_word() -> None:
    found = read_rules(GOOD, "alerts.yaml")
    [rule] = found.rules
    assert rule.for_ == 600_000
    assert rule.document()["condition"]["on"] == "interval"
    assert found.document.value["channels"] == []
    assert read_rules("rules: []", "none.yaml").rules == []


@pytest.mark.parametrize("cut", ["", "\n# rules\n", "{}", "rules:", "rules: []\nchannels:\n"])
def test_a_file_that_may_be_cut_off_is_refused(cut: str) -> None:
    [said] = problems(cut)
    assert "cut off" in said
    assert ": []'" in said


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("below: 1.8", "belo: 1.8", 7, "Did you mean 'below'?"),
        ("signal: acceptance.accept_length", "signal: acceptance.accept_lengt", 6, "Did you mean"),
        ("kind: threshold", "kind: thresold", 4, "Did you mean 'threshold'?"),
        ("for: 10m", "for: 10", 9, "has no unit"),
        ("for: 10m", "for: 8d", 9, "at most 7d"),
        ("for: 10m", "forr: 10m", 9, "Did you mean 'for'?"),
        ("name: low", "name: Low!", 2, "name"),
        ("title: Acceptance is low\n", "runbook: x\n", 2, "'title' is missing"),
        ("below: 1.8", "below: .nan", 7, "number"),
        ("below: 1.8", "below: \"1.8\"", 7, "number"),
        ("for: 10m", "enabled: yes", 9, "boolean"),
        ("      below: 1.8\n", "", 4, "exactly one of above and below"),
        ("channels: []", "chanels: []", 10, "Did you mean 'channels'?"),
        ("on: interval", "on: [a, }", 8, "this is no YAML"),
        ("for: 10m", "for: 10m\n    for: 5m", 10, "stands twice"),
        ("title: Acceptance is low", "title: &a x", 3, "anchors"),
        ("title: Acceptance is low", "title: *a", 3, "anchors"),
        ("title: Acceptance is low", "title: !!python/object:os.system x", 3, "tags"),
        ("for: 10m", "runbook: javascript:alert(1)", 9, "https://"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    found = problems(GOOD.replace(old, new))
    assert any(said in text for text in found), found
    place = next(text for text in found if said in text)
    assert place.startswith("alerts.yaml")
    assert int(re.findall(r":(\d+):|line (\d+)", place)[0][0] or re.findall(r"line (\d+)", place)[0]) == line


def test_all_problems_are_said_at_once() -> None:
    second = GOOD.split("rules:\n")[1].split("channels")[0].replace("below", "abovee")
    found = problems(GOOD.replace("title: Acceptance is low\n", "x: 1\n").replace("channels: []\n", second))
    assert ["'x' is not" in text for text in found] == [False, True, False]
    assert "abovee" in found[2]
    twice = GOOD.replace("channels: []\n", GOOD.split("rules:\n")[1].split("channels")[0])
    assert "stands in line 2 already" in problems(twice)[0]


def test_a_laughing_billion_and_great_depth_are_refused() -> None:
    laughs = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
    with pytest.raises(YamlError, match="anchors"):
        read_yaml(laughs)
    with pytest.raises(YamlError, match="levels"):
        read_yaml("[" * 200 + "]" * 200)
    with pytest.raises(YamlError, match="larger"):
        read_yaml("# " + "x" * MAX_BYTES)
    with pytest.raises(YamlError, match="UTF-8"):
        read_yaml(b"\xff\xfe")


def test_conditions_in_conditions_end_somewhere() -> None:
    leaf: dict[str, Any] = {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1}
    deep: dict[str, Any] = leaf
    for _ in range(4):
        deep = {"kind": "all", "conditions": [deep, leaf]}
    with pytest.raises(RuleError, match="deep"):
        read_rule({"name": "deep", "title": "t", "condition": deep})


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_with_words(text: str) -> None:
    try:
        read_rules(text, "x")
    except AlertsFileError as error:
        assert all(problem.startswith("x") for problem in error.problems)  # noqa: PT017


@given(st.integers(1, 7 * 86_400_000))
def test_a_length_of_time_reads_back(length_ms: int) -> None:
    assert read_duration(write_duration(length_ms)) == length_ms


LIMIT = st.floats(-1e9, 1e9, allow_nan=False)
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("threshold"), "signal": st.just("acceptance.accept_length"),
            "on": st.sampled_from(["value", "interval"]), "window": st.sampled_from(["10s", "5m", "7d"]),
            "match": st.dictionaries(st.sampled_from(["server", "rank"]), st.text("ab*?", min_size=1)),
        }
    ).flatmap(lambda body: LIMIT.map(lambda limit: {**body, "below": limit})),
    st.fixed_dictionaries(
        {
            "kind": st.just("relative"), "signal": st.just("metric:kv.usage"), "drop": st.floats(0.01, 0.99),
            "baseline": st.sampled_from(["preceding", "same_hour_last_week", "previous_launch", "launch:7"]),
        }
    ),
    st.fixed_dictionaries(
        {"kind": st.just("event"), "events": st.lists(st.text("ab_*", min_size=1), min_size=1, max_size=5)}
    ),
)  # fmt: skip
CONDITIONS = st.one_of(
    LEAVES,
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["all", "any"]), "conditions": st.lists(LEAVES, min_size=2, max_size=4)}
    ),
)


@given(CONDITIONS, st.sampled_from(["info", "warning", "critical"]), st.integers(0, 604_800))
def test_a_rule_reads_back_from_what_is_stored(condition: dict[str, Any], severity: str, wait: int) -> None:
    body = {
        "name": "r", "title": "t", "condition": condition, "severity": severity, "for": f"{wait}s",
        "labels": {"team": "x"}, "inhibits": [{"target": {"category": "acceptance"}}],
    }  # fmt: skip
    rule = read_rule(body)
    again = read_rule(rule.document())
    assert again == rule
    assert again.document() == rule.document()


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_without_an_end_is_refused_and_not_taken_as_left_out(number: float) -> None:
    rule = read_yaml(GOOD).value["rules"][0]
    with pytest.raises(RuleError, match=r"rule 'low': min_n: is no finite number; give one, or leave it out"):
        read_rule({**rule, "min_n": number})


def test_of_a_heap_of_problems_the_first_are_said_and_the_rest_counted() -> None:
    with pytest.raises(RuleError) as caught:
        read_rule({f"k{index}": 1 for index in range(1_000)})
    *said, last = caught.value.problems
    assert len(said) == MAX_PROBLEMS
    assert last.reason == "973 more problems are not shown; mend these first"
