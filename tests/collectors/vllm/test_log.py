"""vLLM's log: every form of its lines, counts that are exact or say what they lack, launches, noise."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors.logs.blocks import Unpacked
from specscope_collectors.logs.formats import format_of
from specscope_collectors.logs.options import LogOptions
from specscope_collectors.observations import Increment, Launch, Level, Observation
from specscope_collectors.sources.vllm_log.cycles import derived
from specscope_collectors.sources.vllm_log.lines import Interval, read_interval, read_totals
from specscope_collectors.sources.vllm_log.reading import VllmLogReader

START = (
    "(EngineCore_DP0 pid=77) INFO 11-29 20:50:01 [core.py:58] Initializing a V1 LLM engine (v0.11.0) "
    "with config: model='tiny/target', speculative_config=SpeculativeConfig("
    "method='eagle3', model='tiny/draft', "
    "num_spec_tokens=3), tokenizer='tiny/target', dtype=torch.bfloat16, tensor_parallel_size=2, "
    "pipeline_parallel_size=1, data_parallel_size=1, quantization=None, served_model_name=tiny, "
    "api_key='s3cr3tkey1'"
)
PREFIX = "(APIServer pid=42) INFO 11-29 20:{minute:02}:{second:02} [{where}] "


def load_line(second: int, engine: int = 0, minute: int = 51) -> str:
    return PREFIX.format(minute=minute, second=second, where="loggers.py:123") + (
        f"Engine {engine:03}: Avg prompt throughput: 12.0 tokens/s, "
        "Avg generation throughput: 340.5 tokens/s, "
        "Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 0.0%"
    )


def printed(histogram: list[int], seconds: float = 10.0) -> str:
    """Return what vLLM prints of cycles of which ``histogram[j]`` accepted j drafts."""
    depth, n = len(histogram) - 1, sum(histogram)
    by_position = [sum(histogram[k:]) for k in range(1, depth + 1)]
    accepted, drafted = sum(by_position), n * depth
    rates = ", ".join(f"{count / n:.3f}" for count in by_position)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / n:.2f}, "
        f"Accepted throughput: {accepted / seconds:.2f} tokens/s, "
        f"Drafted throughput: {drafted / seconds:.2f} tokens/s, Accepted: {accepted} tokens, "
        f"Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, "
        f"Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
    )


def spec_line(second: int, histogram: list[int], minute: int = 51) -> str:
    return PREFIX.format(minute=minute, second=second, where="metrics.py:96") + printed(histogram)


def read(text: str, *, year: int | None = 2026) -> tuple[VllmLogReader, list[Observation]]:
    reader = VllmLogReader(LogOptions(server="s", fingerprint="f", zone=UTC, year=year))
    portions = list(reader.read(Unpacked(io.BytesIO(text.encode()))))
    assert [portion.end for portion in portions] == sorted({portion.end for portion in portions})
    return reader, [each for portion in portions for each in portion.observations]


def grown(found: list[Observation], metric: str) -> dict[str, float]:
    """Return position (or what is lacking) → sum."""
    sums: dict[str, float] = {}
    for each in found:
        if isinstance(each, Increment) and each.metric == metric:
            key = each.labels.get("position") or each.labels.get("lacks", "")
            sums[key] = sums.get(key, 0) + each.value
    return sums


def levels(found: list[Observation]) -> dict[str, float]:
    return {each.metric: each.value for each in found if isinstance(each, Level)}


def test_counts_of_an_interval_are_exact() -> None:
    _, found = read("\n".join([START, load_line(10), spec_line(10, [10, 20, 5, 5])]) + "\n")
    assert grown(found, "spec.cycles") == {"": 40}
    assert grown(found, "spec.drafts_proposed") == {"": 120}
    assert grown(found, "spec.drafts_accepted") == {"1": 30, "2": 10, "3": 5}
    [first] = [each for each in found if isinstance(each, Increment) and each.metric == "spec.cycles"]
    assert first.time_ms == datetime(2026, 11, 29, 20, 51, 10, tzinfo=UTC).timestamp() * 1000
    assert first.span_ms == 10_000
    assert first.labels == {"dp_rank": "0", "model_name": "tiny", "told_by": "log"}
    told = levels(found)
    assert told["spec.engine_accept_rate"] == pytest.approx(0.375)
    assert told["spec.accept_length"] == 2.12
    assert told["spec.num_steps"] == 3
    assert (told["requests.running"], told["requests.queued"], told["kv.usage"]) == (3, 1, 0.125)
    assert told["throughput.generated"] == 340.5


def test_a_start_line_is_a_launch_without_secrets() -> None:
    _, found = read(
        START + "\n" + spec_line(10, [1, 1, 1, 1]) + "\n" + START.replace("20:50", "20:52") + "\n"
    )
    first, second = (each for each in found if isinstance(each, Launch))
    assert (first.engine, first.engine_version, first.model) == ("vllm", "0.11.0", "tiny/target")
    assert (first.speculative.algorithm, first.speculative.num_steps) == ("eagle3", 3)
    assert first.speculative.draft_model == "tiny/draft"
    assert (first.parallelism.tp_size, first.dtype) == (2, "torch.bfloat16")
    assert first.quantization is None
    assert "s3cr3tkey1" not in str(first)
    assert (second.reason, second.key != first.key) == ("restarted", True)


def test_lines_without_a_start_are_of_one_unknown_launch() -> None:
    _, found = read("\n".join(spec_line(second, [3, 2, 1, 0]) for second in (10, 20, 30)) + "\n")
    [launch] = [each for each in found if isinstance(each, Launch)]
    assert (launch.engine, launch.engine_version, launch.version_source) == ("vllm", None, None)
    assert sum(grown(found, "spec.cycles").values()) == 18


def test_ranks_are_told_by_the_line_before() -> None:
    lines = [load_line(10, 0), spec_line(10, [5, 5]), load_line(11, 1), spec_line(11, [2, 8])]
    _, found = read("\n".join(lines) + "\n")
    cycles = {each.labels["dp_rank"]: each.value for each in found
              if isinstance(each, Increment) and each.metric == "spec.cycles"}  # fmt: skip
    assert cycles == {"0": 10, "1": 10}


EARLY = [
    pytest.param("Draft acceptance rate: 50.0%, Accepted: 15 tokens, Drafted: 30 tokens", None, id="first"),
    pytest.param(
        "Draft acceptance rate: 50.0%, Mean acceptance length: 2.50, Accepted: 15 tokens, "
        "Drafted: 30 tokens, Per-position acceptance rate: 0.700, 0.500, 0.300",
        10,
        id="second",
    ),
]


@pytest.mark.parametrize(("text", "cycles"), EARLY)
def test_first_forms(text: str, cycles: int | None) -> None:
    line = PREFIX.format(minute=51, second=10, where="metrics.py:60") + "SpecDecoding metrics: " + text
    reader, found = read(line + "\n")
    accepted = sum(grown(found, "spec.drafts_accepted").values())
    assert accepted == 15
    assert levels(found)["spec.engine_accept_rate"] == 0.5
    if cycles is None:
        assert grown(found, "spec.cycles") == {}
        assert grown(found, "spec.drafts_proposed") == {"cycles": 30}
        assert any("certain in 0 of 1" in told for told in reader.report())
    else:
        assert grown(found, "spec.cycles") == {"": cycles}


def test_running_totals_of_the_old_engine_are_subtracted() -> None:
    def line(second: int, drafted: int, emitted: int) -> str:
        return f"INFO 11-29 20:51:{second:02} metrics.py:455] " + (
            "Speculative metrics: Draft acceptance rate: 0.500, System efficiency: 0.600, "
            "Number of speculative tokens: 3, Number of accepted tokens: 9, "
            f"Number of draft tokens: {drafted}, "
            f"Number of emitted tokens: {emitted}."
        )

    _, found = read("\n".join([line(5, 300, 250), line(10, 600, 470), line(15, 601, 471)]) + "\n")
    assert grown(found, "spec.cycles") == {"accepted": 100}
    assert grown(found, "spec.drafts_proposed") == {"accepted": 300}
    assert levels(found)["spec.accept_length"] == 2.2


@pytest.mark.parametrize("end", ["300", ", 0.300", ", 0.500, 0.300"])
def test_rates_that_are_cut_tell_no_depth(end: str) -> None:
    line = PREFIX.format(minute=51, second=10, where="metrics.py:60") + "SpecDecoding metrics: " + (
        "Draft acceptance rate: 50.0%, Mean acceptance length: 2.50, Accepted: 15 tokens, "
        "Drafted: 30 tokens, Per-position acceptance rate: 0.700, 0.500, 0.300"
    )  # fmt: skip
    assert line.endswith(end)
    _, found = read(line.removesuffix(end) + "\n")
    assert "spec.num_steps" not in levels(found)
    assert sum(grown(found, "spec.drafts_accepted").values()) == 15


def test_a_total_that_is_cut_is_none() -> None:
    for drafted, emitted in (("300", "19"), ("1,200", "9.")):
        text = f"Number of draft tokens: {drafted}, Number of emitted tokens: {emitted}"
        assert read_totals(f"Number of speculative tokens: 3, {text}") is None


@given(st.lists(st.integers(0, 60), min_size=2, max_size=8).filter(sum))
def test_derived_counts_are_the_true_ones_or_none(histogram: list[int]) -> None:
    interval = read_interval(printed(histogram))
    assert interval is not None
    exact = derived(interval)
    if exact is not None:
        assert exact.cycles == sum(histogram)
        if exact.by_position:
            depth = len(histogram)
            assert exact.by_position == tuple(sum(histogram[k:]) for k in range(1, depth))


@given(st.lists(st.integers(0, 4_000), min_size=2, max_size=6).filter(lambda h: sum(h[1:]) > 0))
def test_a_fixed_depth_leaves_one_number_of_cycles(histogram: list[int]) -> None:
    interval = read_interval(printed(histogram))
    assert interval is not None
    exact = derived(interval, is_depth_fixed=True)
    assert exact is not None
    assert exact.cycles == sum(histogram)


def test_what_fits_nothing_is_not_derived() -> None:
    assert derived(Interval(15, 30, 9.0, None, (0.7, 0.5, 0.3))) is None
    assert derived(Interval(0, 30, 1.0, None, (0.0, 0.0, 0.0))) is None


def test_more_accepted_than_drafted_is_refused() -> None:
    line = spec_line(10, [1, 1]).replace("Accepted: 1 tokens", "Accepted: 9 tokens")
    reader, found = read(line + "\n")
    assert grown(found, "spec.drafts_accepted") == {}
    assert sum(reader.summary.refused.values()) == 1


def test_a_date_without_a_year_needs_one() -> None:
    reader, found = read(spec_line(10, [1, 1]) + "\n", year=None)
    assert found == []
    assert not reader.found
    assert reader.summary.refused["no_year"] == 1


def test_the_stamp_of_the_container_runtime_has_a_year() -> None:
    _, found = read(f"2025-11-29T20:51:10.5Z {spec_line(10, [1, 1])}\n", year=None)
    [cycles] = [each for each in found if isinstance(each, Increment) and each.metric == "spec.cycles"]
    assert cycles.time_ms == datetime(2025, 11, 29, 20, 51, 10, 500_000, tzinfo=UTC).timestamp() * 1000


def test_the_year_goes_on_at_its_end() -> None:
    lines = [spec_line(10, [1, 1]).replace("11-29", "12-31"), spec_line(20, [1, 1]).replace("11-29", "01-01")]
    _, found = read("\n".join(lines) + "\n")
    years = [datetime.fromtimestamp(each.time_ms / 1000, UTC).year for each in found
             if isinstance(each, Increment) and each.metric == "spec.cycles"]  # fmt: skip
    assert years == [2026, 2027]


NOISE = st.sampled_from(
    ["", "INFO: 127.0.0.1:4 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK", "SpecDecoding metrics: ",
     "\x1b[31mred", "Traceback (most recent call last):", "Accepted: 5 tokens", "\ufffd\ufffd", "x" * 2_000]
)  # fmt: skip


@given(st.lists(NOISE, max_size=12), st.integers(0, 2**32))
def test_noise_between_lines_changes_nothing(noise: list[str], seed: int) -> None:
    lines = [START, load_line(10), spec_line(10, [4, 3, 2, 1]), load_line(20), spec_line(20, [9, 0, 0, 1])]
    _, clean = read("\n".join(lines) + "\n")
    mixed, places = list(lines), random.Random(seed)
    for text in noise:
        mixed.insert(places.randrange(len(mixed) + 1), text)
    _, found = read("\n".join(mixed) + "\n")
    assert found == clean


@pytest.mark.parametrize("text", ["\x00\x01" * 500, "y" * 3_000_000, "SpecDecoding metrics: " * 10_000])
def test_garbage_is_no_log(text: str) -> None:
    reader, found = read(text)
    assert found == []
    assert not reader.found


def test_whose_log_it_is() -> None:
    assert format_of(spec_line(1, [1, 1]).encode()).source == "vllm_log"
    sglang = b"[2026-11-29 20:50:45 TP0] Decode batch. #running-req: 1, accept len: 1.50"
    assert format_of(sglang).source == "sglang_log"
    assert format_of(b"").source == "sglang_log"
