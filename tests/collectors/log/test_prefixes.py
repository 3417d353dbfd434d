"""A line says the same whatever runtime wrote something in front of it."""

from __future__ import annotations

import json
from datetime import date
from zoneinfo import ZoneInfo

import pytest
from tests.collectors.log.reading import BODY, EXPECTED, LINE, STAMP, by_metric, ms, read

AT = ms("2026-11-29 20:50:45")
RAY = "\x1b[36m(RayActor pid=123, ip=10.0.0.1)\x1b[0m "
CRI = "2026-11-29T19:50:45.123456789Z stderr F "
PREFIXED = {
    "plain": (LINE, AT),
    "milliseconds": (f"[2026-11-29 20:50:45.250 TP0] {BODY}", AT + 250),
    "compose": (f"sglang-1  | {LINE}", AT),
    "compose in colour": (f"\x1b[33msglang-1  | \x1b[0m{LINE}", AT),
    "docker -t": (f"2026-11-29T19:50:45.500000000Z {LINE}", ms("2026-11-29 19:50:45.500")),
    "docker -t with an offset": (f"2026-11-29T20:50:45.5+01:00 {LINE}", ms("2026-11-29 19:50:45.500")),
    "Kubernetes": (CRI + LINE, ms("2026-11-29 19:50:45.123")),
    "journald": (f"Nov 29 20:50:46 host python[123]: {LINE}", AT),
    "journald, ISO": (f"2026-11-29T20:50:46+0100 host python[123]: {LINE}", ms("2026-11-29 19:50:46")),
    "ray": (RAY + LINE, AT),
    "doubled stamp": (f"[2026-11-29 20:50:44] {LINE}", AT),
    "progress bar": (f"Loading:  50% 1/2 [00:01<00:01, 1.2it/s]{LINE}", AT),
    "progress bar that returns": (f"Loading:  50% 1/2\rLoading: 100% 2/2\r{LINE}", AT),
    "colours in between": (LINE.replace("accept len", "\x1b[01;31m\x1b[Kaccept len\x1b[m\x1b[K"), AT),
    "behind the line": (f"{LINE} [repeated 3x across cluster]\x1b[32m\x1b[0m", AT),
    "another logging format": (f"2026-11-29 20:50:45,125 INFO sglang.scheduler: {BODY}", AT + 125),
    "Windows line end": (f"{LINE}\r", AT),
    "docker JSON": (
        json.dumps({"log": LINE + "\n", "stream": "stderr", "time": "2026-11-29T19:50:45.5Z"}).replace(
            '{"log": ', '{"log":'
        ),
        ms("2026-11-29 19:50:45.500"),
    ),
}


@pytest.mark.parametrize("name", PREFIXED)
def test_a_prefix_changes_nothing(name: str) -> None:
    line, time_ms = PREFIXED[name]
    found = read(f"something else\n{line}\nsomething else\n" if "JSON" not in name else f"{line}\n")
    assert by_metric(found) == EXPECTED
    assert {level.time_ms for level in found.levels} == {time_ms}
    assert found.summary.decode_lines == 1
    assert not found.summary.refused


def test_times_are_read_in_the_zone_given() -> None:
    berlin = read(LINE + "\n", zone=ZoneInfo("Europe/Berlin"))
    assert {level.time_ms for level in berlin.levels} == {ms("2026-11-29 19:50:45")}


def test_the_hour_that_comes_twice_is_told_apart_by_the_order() -> None:
    times = ("02:59:00", "02:59:59", "02:00:01", "02:30:00", "03:00:00")
    log = "".join(f"[2026-10-25 {clock}] {BODY}\n" for clock in times)
    found = read(log, zone=ZoneInfo("Europe/Berlin"))
    seen = [level.time_ms for level in found.levels if level.metric == "requests.running"]
    expected = ("00:59:00", "00:59:59", "01:00:01", "01:30:00", "02:00:00")
    assert seen == [ms(f"2026-10-25 {clock}") for clock in expected]


def test_times_without_a_date_go_on_over_midnight() -> None:
    log = f"[23:59:59 TP0] {BODY}\n[00:00:01 TP0] {BODY}\n"
    found = read(log, date=date(2026, 11, 29))
    assert {level.time_ms for level in found.levels} == {ms("2026-11-29 23:59:59"), ms("2026-11-30 00:00:01")}
    refused = read(log)
    assert (refused.levels, refused.summary.refused) == ([], {"no_date": 2})


def test_a_line_that_comes_late_over_midnight_is_of_the_day_before() -> None:
    clocks = ("23:59:58", "00:00:01", "23:59:59", "00:00:02", "23:58:00")
    days = (29, 30, 29, 30, 30)
    log = "".join(f"[{clock} TP0] {BODY}\n" for clock in clocks)
    seen = [
        level.time_ms for level in read(log, date=date(2026, 11, 29)).levels if level.metric == "kv.usage"
    ]
    assert seen == [ms(f"2026-11-{day} {clock}") for day, clock in zip(days, clocks, strict=True)]


def test_a_line_that_comes_late_over_new_year_is_of_the_year_before() -> None:
    stamps = ("Dec 31 23:59:58", "Jan  1 00:00:01", "Dec 31 23:59:59", "Jan  1 00:00:02")
    log = "".join(f"{stamp} host python[1]: {BODY}\n" for stamp in stamps)
    seen = [level.time_ms for level in read(log, year=2025).levels if level.metric == "kv.usage"]
    expected = ("2025-12-31 23:59:58", "2026-01-01 00:00:01", "2025-12-31 23:59:59", "2026-01-01 00:00:02")
    assert seen == [ms(stamp) for stamp in expected]


def test_dates_without_a_year_go_on_over_new_year() -> None:
    log = f"Dec 31 23:59:59 host python[1]: {BODY}\nJan  1 00:00:01 host python[1]: {BODY}\n"
    found = read(log, year=2025)
    assert {level.time_ms for level in found.levels} == {ms("2025-12-31 23:59:59"), ms("2026-01-01 00:00:01")}
    assert read(log).summary.refused == {"no_year": 2}


@pytest.mark.parametrize("stamp", ["[2026-13-45 20:50:45]", "[2026-11-29 20:50:99]", "[2026-02-30 10:00:00]"])
def test_a_time_that_does_not_exist_is_refused_and_counted(stamp: str) -> None:
    found = read(f"{stamp} {BODY}\n{LINE}\n")
    assert by_metric(found) == EXPECTED
    assert found.summary.refused == {"bad_stamp": 1}


def test_a_line_without_a_time_is_refused_and_counted() -> None:
    found = read(BODY + "\n")
    assert (found.levels, found.summary.refused) == ([], {"no_stamp": 1})


def test_parts_of_a_line_that_the_runtime_cut_are_joined_per_stream() -> None:
    at = "2026-11-29T19:50:45.123Z"
    half = len(LINE) // 2
    between = f"{at} stdout F [2026-11-29 20:50:45] INFO: GET"
    log = f"{at} stderr P {LINE[:half]}\n{between}\n{at} stderr F {LINE[half:]}\n"
    found = read(log)
    assert by_metric(found) == EXPECTED
    assert found.summary.cut_lines == 0


def test_two_writers_on_one_line_are_two_lines() -> None:
    other = LINE.replace("TP0", "DP1 TP4").replace("accept len: 3.33", "accept len: 2.00")
    found = read(f"{LINE}{other}\n")
    assert found.values("spec.accept_length") == [3.33, 2.0]
    assert found.values("requests.queued") == [2.0, 2.0]
    assert found.values("spec.accept_length", dp_rank="1", tp_rank="4") == [2.0]


def test_a_writer_that_is_cut_off_by_another_gives_what_is_whole() -> None:
    other = LINE.replace("TP0", "DP1 TP4")
    cut = LINE[: LINE.index("gen throughput") + len("gen throughput (token/s): 10")]
    found = read(f"{cut}{other}\n")
    assert found.values("throughput.generated") == [1085.39]
    assert found.values("spec.accept_length") == [3.33, 3.33]
    assert found.summary.cut_lines == 1


def test_a_status_line_inside_a_logged_prompt_is_no_status_line() -> None:
    prompt = f"[2026-11-29 20:50:45] Receive: obj=GenerateReqInput(text='{BODY}')"
    found = read(f"{prompt}\n")
    assert found.levels == []
    assert found.summary.refused == {"quoted inside another message": 1}


def test_the_stamp_names_the_rank() -> None:
    found = read(f"[2026-11-29 20:50:45 DP1 PP0 TP5 EP3] {BODY}\n")
    expected = {"dp_rank": "1", "pp_rank": "0", "tp_rank": "5", "moe_ep_rank": "3"}
    assert all(level.labels == expected for level in found.levels)
    assert len(found.levels) == len(EXPECTED)
    assert {level.labels["tp_rank"] for level in read(f"{STAMP} {BODY}\n").levels} == {"0"}
