"""What the numbers of a line may be, and which definition the printed rate has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collectors.log.reading import BODY, EXPECTED, LINE, by_metric, read

from specscope_collectors.sources.sglang_log.rate_definition import (
    NONE,
    STRICT,
    UNDETERMINED,
    WITH_BONUS,
    RatePairs,
)


def changed(old: str, new: str) -> str:
    """Return the line with another text in it."""
    assert old in LINE
    return LINE.replace(old, new) + "\n"


def test_no_cycles_is_no_value() -> None:
    found = read(changed("accept len: 3.33, accept rate: 0.78", "accept len: 0.00, accept rate: 0.00"))
    assert {"spec.accept_length", "spec.engine_accept_rate"}.isdisjoint(by_metric(found))
    assert not found.summary.refused


def test_nothing_accepted_is_a_value() -> None:
    found = by_metric(
        read(changed("accept len: 3.33, accept rate: 0.78", "accept len: 1.00, accept rate: 0.00"))
    )
    assert (found["spec.accept_length"], found["spec.engine_accept_rate"]) == (1.0, 0.0)


def test_digits_in_groups_are_one_number_and_other_commas_none() -> None:
    log = changed("18432", "18,432").replace("1085.39", "1,001,085.39")
    grouped = {"kv.used_tokens": 18432.0, "throughput.generated": 1_001_085.39}
    assert by_metric(read(log)) == EXPECTED | grouped
    assert set(read(log * 500, together_from_bytes=0).values("kv.used_tokens")) == {18432.0}
    for text in ("18,43", "1,8432", "18.432,5"):
        assert "kv.used_tokens" not in by_metric(read(changed("18432,", f"{text},"))), text


IMPOSSIBLE = [
    ("accept len: 3.33", "accept len: 0.40", "spec.accept_length", "accept length below 1"),
    ("accept rate: 0.78", "accept rate: 1.20", "spec.engine_accept_rate", "spec.engine_accept_rate above 1"),
    ("accept rate: 0.78", "accept rate: 0.00", "spec.engine_accept_rate",
     "accept rate 0 beside an accept length above 1"),
    ("token usage: 0.31", "token usage: 1.31", "kv.usage", "kv.usage above 1"),
    ("#running-req: 8", "#running-req: -8", "requests.running", "negative requests.running"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "metric", "reason"), IMPOSSIBLE)
def test_the_impossible_is_refused_and_counted(old: str, new: str, metric: str, reason: str) -> None:
    found = read(changed(old, new))
    assert by_metric(found) == {name: value for name, value in EXPECTED.items() if name != metric}
    assert found.summary.refused == {reason: 1}


def test_an_accept_length_above_what_the_launch_drafts_is_refused() -> None:
    dump = "[2026-11-29 20:50:00] server_args=ServerArgs(model_path='m', speculative_algorithm='EAGLE3', "
    log = dump + "speculative_num_draft_tokens=2)\n" + LINE + "\n"
    found = read(log)
    assert found.summary.refused == {"accept length above what the launch can draft": 1}
    assert found.values("spec.accept_length") == []
    adaptive = read(log.replace("draft_tokens=2", "draft_tokens=2, speculative_adaptive=True"))
    assert adaptive.values("spec.accept_length") == [3.33]


@pytest.mark.parametrize("text", ["nan%", "nan", "inf", "none", ""])
def test_an_occupancy_that_is_no_number_is_left_out(text: str) -> None:
    found = read(f"{LINE}, fwd occupancy: {text}\n")
    assert by_metric(found) == EXPECTED
    assert not found.summary.refused


def test_other_caches_have_their_own_words() -> None:
    found = by_metric(
        read(changed("#token: 18432, token usage: 0.31",
                     "#full token: 77, full token usage: 0.20, #swa token: 9, swa token usage: 0.90"))
    )  # fmt: skip
    assert (found["kv.used_tokens"], found["kv.usage"]) == (77.0, 0.2)


def test_a_prefill_line_gives_what_it_has() -> None:
    body = (
        "Prefill batch, #new-seq: 3, #new-token: 2048, #cached-token: 64, token usage: 0.31, "
        "#running-req: 8, #queue-req: 2, #pending-token: 512, cuda graph: False, "
        "input throughput (token/s): 5840.76"
    )
    found = by_metric(read(LINE.replace(BODY, body) + "\n"))
    assert found == {"requests.running": 8.0, "requests.queued": 2.0, "kv.usage": 0.31}


def decided(pairs: list[tuple[float, float]], told: int | None = None) -> tuple[str, int | None]:
    """Return (definition, D)."""
    known = RatePairs()
    for length, rate in pairs:
        known.add(length, rate)
    decision = known.decide(told)
    return decision.definition, decision.draft_tokens


def test_the_worked_example_of_both_definitions() -> None:
    assert decided([(3.33, 0.83)]) == (WITH_BONUS, 4)
    assert decided([(3.33, 0.78)]) == (STRICT, 4)
    assert decided([(1.12, 0.19), (1.5, 0.25), (2.0, 0.33)]) == (WITH_BONUS, 6)


def test_what_the_numbers_leave_open_is_undetermined() -> None:
    assert decided([]) == (NONE, None)
    assert decided([(2.0, 0.5)])[0] == UNDETERMINED  # τ/4 and (τ − 1)/2
    assert decided([(3.33, 0.11)])[0] == UNDETERMINED  # neither, or too coarse
    assert decided([(3.0, 0.75), (1.5, 0.9)])[0] == UNDETERMINED


def test_what_the_launch_tells_of_d_decides_more() -> None:
    assert decided([(2.0, 0.5)], told=4) == (WITH_BONUS, 4)
    assert decided([(2.0, 0.5)], told=3) == (STRICT, 3)


def test_a_few_windows_over_a_switch_do_not_overturn_the_rest() -> None:
    pairs = [(2.0 + number / 100, round((2.0 + number / 100) / 4, 2)) for number in range(99)]
    assert decided([*pairs, (2.0, 0.9)])[0] == WITH_BONUS


@given(
    st.sampled_from([WITH_BONUS, STRICT]),
    st.integers(2, 16),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_a_decision_is_never_wrong(name: str, depth: int, shares: list[float]) -> None:
    """Of numbers made with one definition, that one or none is chosen, never the other."""
    lengths = [1 + share * (depth - 1) for share in shares]
    rates = [length / depth if name == WITH_BONUS else (length - 1) / (depth - 1) for length in lengths]
    pairs = [(round(length, 2), round(rate, 2)) for length, rate in zip(lengths, rates, strict=True)]
    assert decided(pairs)[0] in (name, UNDETERMINED)
    assert decided(pairs, told=depth) in ((name, depth), (UNDETERMINED, None))
