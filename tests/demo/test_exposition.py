"""The exposition is what SGLang writes: names, labels, types, bucket bounds, order and numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.demo.playing import families, play, player, running, single, telemetry

from specscope_server.demo.exposition import Family, Snapshot, number
from specscope_server.demo.model import CycleModel
from specscope_server.demo.story import Load

FIXTURES = Path(__file__).parent / "fixtures"
OWN = "specscope_demo_info"
OURS = "specscope_"
"""What no engine writes by itself: the mark of the demo, and the probe's times."""
VERSIONS = ("0.5.8", "0.5.23")


def known(version: str) -> dict[str, dict[str, Any]]:
    """Return family name → type, label keys and bucket bounds, as the engine of that version writes them."""
    answer: dict[str, dict[str, Any]] = json.loads((FIXTURES / f"families-{version}.json").read_text())
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_names_types_labels_and_bounds_are_the_engines(version: str) -> None:
    subject, engine = player(version), known(version)
    seen: set[str] = set()
    for _ in play(subject, 420, 7_000):
        if subject.current is None:
            continue
        for name, family in families(subject).items():
            if name.startswith(OURS):
                continue
            seen.add(name)
            assert family.type == engine[name]["type"], name
            for sample in family.samples:
                keys = sorted(
                    key for key in sample.labels if not (key == "le" and family.type == "histogram")
                )
                assert keys == engine[name]["labels"], sample
            if family.type == "histogram":
                edges = {s.labels["le"] for s in family.samples if s.name.endswith("_bucket")} - {"+Inf"}
                assert sorted(map(float, edges)) == engine[name]["bounds"], name
    assert seen == set(engine)


@pytest.mark.parametrize("version", VERSIONS)
def test_order_and_form_are_those_of_the_multiprocess_collector(version: str) -> None:
    subject = single(CycleModel(3), version, load=Load(rate=1.5))
    telemetry(subject, 120)
    body = subject.metrics(running(subject))
    assert body.endswith("\n")
    assert "_created" not in body
    kinds = [
        re.sub(r".*_(sum|bucket|count)\{.*", r"\1", line)
        for line in body.splitlines()
        if "queue_time" in line
    ]
    assert kinds[2] == "sum"
    assert kinds[3] == "bucket"
    assert kinds[-1] == "count"
    for line in body.splitlines():
        if not line.startswith("#"):
            keys = re.findall(r'[{,](\w+)="', line)
            assert keys == sorted(keys), line
            assert re.fullmatch(r"\S+?(\{.*\})? (NaN|\+Inf|\d+\.\d+(e[+-]\d+)?|\de-\d+)", line), line


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_is_marked_as_a_demo(version: str) -> None:
    subject = player(version)
    telemetry(subject, 30)
    seen = families(subject)
    assert [sample.value for sample in seen[OWN].samples] == [1.0]
    assert all(family.documentation.startswith("(demo) ") for family in seen.values())
    labels = [sample.labels for family in seen.values() for sample in family.samples]
    names = {label["model_name"] for label in labels if "model_name" in label}
    assert names == {"Kimi-K2.5 (demo)"}


def test_a_label_value_cannot_break_the_exposition() -> None:
    family = Family("x", "gauge", "x", lambda _: [({"model_name": 'a"b\\c\nd'}, 1.0)])
    nothing: Snapshot = None  # type: ignore[assignment]
    (parsed,) = text_string_to_metric_families("\n".join(family.lines(nothing)) + "\n")
    assert parsed.samples[0].labels == {"model_name": 'a"b\\c\nd'}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1.0"), (0.0, "0.0"), (float("nan"), "NaN"), (float("inf"), "+Inf"), (1e6, "1000000.0")],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("version", VERSIONS)
def test_gauges_are_absent_until_the_first_log_call(version: str) -> None:
    subject = single(CycleModel(2), version, load=Load(rate=1.0))
    subject.advance(subject.started_ms + 1)
    assert ("sglang:gen_throughput" in families(subject)) is (version == "0.5.23")
    telemetry(subject, 60)
    assert "sglang:gen_throughput" in families(subject)
