"""Times and steps as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.timeparse import (
    MAX_BUCKETS,
    MAX_MS,
    NICE_STEPS_MS,
    UNITS_MS,
    iso_or_none,
    nice_step_ms,
    parse_duration_ms,
    parse_instant,
    to_iso,
    window_of,
)

NOW = 1_772_366_400_000  # 2026-03-01T12:00:00Z
instants = st.integers(0, MAX_MS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        (" now ", NOW),
        ("now-6h", NOW - 6 * 3_600_000),
        ("-30m", NOW - 30 * 60_000),
        ("now+1.5h", NOW + 5_400_000),
        ("-500ms", NOW - 500),
        ("1772366400000", NOW),
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01T12:00:00", NOW),
        ("2026-03-01T13:00:00+01:00", NOW),
        ("2026-03-01T13:00:00 01:00", NOW),  # "+" unescaped in a query string
        ("2026-03-01", NOW - 12 * 3_600_000),
        ("2026-03-01T12:00:00.250Z", NOW + 250),
    ],
)
def test_instants_are_read(text: str, expected: int) -> None:
    assert parse_instant(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "now-",
        "now-6",
        "6h",
        "-1y",
        "now--1h",
        "17723664",
        "2026-13-01",
        "٣٠m",
        "-1h\x00",
        "nan",
    ],
)
def test_other_texts_are_refused_with_input_reason_and_remedy(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_instant(text, NOW, "to")
    assert f"to={text!r}" in caught.value.detail
    assert "is not a time; write ISO 8601" in caught.value.detail


@pytest.mark.parametrize(
    "text", ["now-999999999w", "999999999999999", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z"]
)
def test_times_outside_the_calendar_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="outside the years 1970 to 2999"):
        parse_instant(text, NOW)


@given(instants)
def test_iso_round_trips(time_ms: int) -> None:
    text = to_iso(time_ms)
    assert len(text) == 24
    assert parse_instant(text, NOW) == time_ms


@given(instants, st.integers(-14 * 60, 14 * 60))
def test_any_offset_means_the_same_instant(time_ms: int, offset_minutes: int) -> None:
    zone = timezone(timedelta(minutes=offset_minutes))
    try:
        moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)).astimezone(zone)
    except OverflowError:
        return  # beyond the last year in that zone
    assert parse_instant(moment.isoformat(), NOW) == time_ms


@given(st.integers(1, 9_999), st.sampled_from(sorted(UNITS_MS)))
def test_relative_times_and_durations_agree(count: int, unit: str) -> None:
    length = parse_duration_ms(f"{count}{unit}")
    assert length == count * UNITS_MS[unit]
    base = 200 * 365 * UNITS_MS["d"]
    if length <= base:
        assert parse_instant(f"now-{count}{unit}", base) == base - length


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        found: int | str = parse_instant(text, NOW)
    except InvalidInput as error:
        found = error.detail
    assert found.startswith("from=") if isinstance(found, str) else found >= 0


@pytest.mark.parametrize("text", ["", "0s", "5", "-5m", "5 m", "1y", "0.0001s", "five"])
def test_wrong_durations_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a length of time; write 30s"):
        parse_duration_ms(text)


@given(st.integers(1, 400 * 86_400_000), st.integers(1, 5_000), st.integers(1, 60_000))
def test_nice_steps_give_at_most_the_points_asked_for(span_ms: int, points: int, at_least_ms: int) -> None:
    step = nice_step_ms(span_ms, points, at_least_ms)
    assert step >= at_least_ms
    assert -(-span_ms // step) <= points
    assert step in NICE_STEPS_MS or step % NICE_STEPS_MS[-1] == 0


@given(instants, st.integers(1, 10**10), st.sampled_from(NICE_STEPS_MS))
def test_windows_are_aligned_and_cover_what_was_asked(from_ms: int, span_ms: int, step_ms: int) -> None:
    if span_ms // step_ms + 2 > MAX_BUCKETS:
        return
    window = window_of(from_ms, from_ms + span_ms, step_ms)
    assert window.from_ms % step_ms == 0
    assert window.from_ms <= from_ms < window.from_ms + step_ms
    assert window.from_ms + window.buckets * step_ms >= window.to_ms == from_ms + span_ms


def test_empty_and_huge_windows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="is not before to"):
        window_of(NOW, NOW, 1_000)
    with pytest.raises(InvalidInput, match="over the limit of 20000; choose a longer step"):
        window_of(0, NOW, 1_000)


def test_none_stays_none() -> None:
    assert iso_or_none(None) is None
    assert iso_or_none(0) == "1970-01-01T00:00:00.000Z"
