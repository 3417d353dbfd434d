"""One way to write numbers: digits that tell a value from its limit, and the unit that a reader knows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.alerts.channels.notification import CardValue
from specscope_server.alerts.channels.words import value_words
from specscope_server.alerts.numbers import UNKNOWN, interval, number
from specscope_server.alerts.rules.signals import signals

UNITS = sorted({one.unit for one in signals().values()} | {one.n_unit for one in signals().values()})


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.09123, "tokens/cycle", "1.091 tokens/cycle"), (1.1496, "tokens/cycle", "1.15 tokens/cycle"),
        (0.37123, "1", "37.12 %"), (0.0241, "ratio", "2.41 %"), (1.0, "1", "100 %"), (0.0, "1", "0 %"),
        (0.87, "×", "0.87×"), (12.345, "ms", "12.35 ms"), (912.4, "seconds", "912.4 s"),
        (1.0, "seconds", "1 s"),
        (0.004, "seconds/s", "0.004 s/s"), (1_234.6, "tokens/s", "1,235 tokens/s"), (2.5, "GB", "2.5 GB"),
        (25e6, "bytes", "25 MB"), (999, "bytes", "999 bytes"), (12_345.6, "cycles", "12,346 cycles"),
        (1, "events", "1 event"), (0.0, "events", "0 events"), (1, "passes", "1 pass"),
        (1, "series", "1 series"),
        (1, "tokens/cycle", "1 tokens/cycle"), (2, "level", "2"), (1, "flag", "1"), (-0.0, "nats", "0 nats"),
        (math.nan, "1", UNKNOWN), (None, "ms", UNKNOWN), (math.inf, "ms", UNKNOWN),
        (2e15, "tokens", "2e+15 tokens"),
    ],
)  # fmt: skip
def test_numbers_for_people(value: float | None, unit: str, text: str) -> None:
    assert number(value, unit) == text


@given(st.floats(-1e6, 1e6), st.sampled_from(UNITS))
def test_no_unit_of_a_signal_is_a_riddle(value: float, unit: str) -> None:
    text = number(value, unit)
    assert not text.endswith(" 1")
    assert "ratio" not in text
    digits = text.replace(",", "").rstrip("×").split()[0]
    scale = 100 if unit == "1" else 1 if unit != "bytes" else float("nan")
    if not math.isnan(scale):
        assert float(digits) == pytest.approx(value * scale, rel=6e-4, abs=1e-300)


def test_a_card_and_a_reason_write_the_same() -> None:
    value = CardValue("acceptance", 0.3712, "1", 0.36, 0.38, 0.4)
    assert value_words(value) == "37.12 % (95 % interval 36 % to 38 %), limit 40 %"
    assert number(0.3712, "1") + interval(0.36, 0.38, "1") == "37.12 % (95 % interval 36 % to 38 %)"
    assert interval(None, 1.0, "ms") == interval(math.nan, 1.0, "ms") == ""
