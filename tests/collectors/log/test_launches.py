"""Launches, restarts and events of a log."""

from __future__ import annotations

import json

import pytest
from tests.collectors.log.reading import BODY, LINE, ms, read

from specscope_collectors.logs import blocks
from specscope_collectors.observations import Event
from specscope_collectors.sources.sglang_log import reading
from specscope_collectors.sources.sglang_log.rate_definition import STRICT, WITH_BONUS
from specscope_collectors.sources.sglang_log.report import report
from specscope_collectors.sources.sglang_log.server_args import read_dump

REPR = (
    "server_args=ServerArgs(model_path='m/llama', served_model_name='llama', tp_size=8, dp_size=2, "
    "speculative_algorithm='EAGLE3', speculative_num_steps=3, speculative_eagle_topk=1, "
    "speculative_num_draft_tokens=4, api_key='sk-very-secret-key-0123456789', cuda_graph_bs=[1, 2, (3, 4)], "
    "json_model_override_args='{\"a\": \"it\\'s, fine)\"}', mode=<Mode.NULL: 'null'>, "
    "nested=Foo(a=1, b='x, y'), ratio=0.9, negative=-1, huge=1e999, dtype='auto')"
)
DICT = (
    "server_args={'model_path': 'm/llama', 'served_model_name': 'llama', 'tp_size': 8, 'dp_size': 2, "
    "'speculative_algorithm': 'EAGLE3', 'speculative_num_steps': 3, 'speculative_eagle_topk': 1, "
    "'speculative_num_draft_tokens': 4, 'api_key': 'sk-very-secret-key-0123456789', "
    "'map': {'a': [1, {'b': 'c}'}]}, 'dtype': 'auto'}"
)
READY = "The server is fired up and ready to roll!"


def at(second: int, text: str) -> str:
    """Return a line of that second."""
    return f"[2026-11-29 20:50:{second:02}] {text}\n"


@pytest.mark.parametrize("dump", [REPR, DICT])
def test_both_forms_of_the_dump_are_a_launch_without_secrets(dump: str) -> None:
    found = read(at(1, dump) + at(2, BODY))
    (launch,) = found.launches
    assert (launch.time_ms, launch.engine, launch.reason) == (
        ms("2026-11-29 20:50:01"),
        "sglang",
        "first seen",
    )
    assert (launch.model, launch.served_model_name, launch.dtype) == ("m/llama", "llama", "auto")
    assert (launch.parallelism.tp_size, launch.parallelism.dp_size) == (8, 2)
    assert (launch.speculative.num_steps, launch.speculative.num_draft_tokens) == (3, 4)
    assert launch.config["api_key"] == "[redacted]"
    assert "sk-very-secret" not in repr(found.observations)
    assert {level.labels["model_name"] for level in found.levels} == {"llama"}


def test_the_dump_and_the_lines_bound_the_version_together() -> None:
    both = BODY + ", "
    assert [launch.engine_version for launch in read(at(1, REPR)).launches] == ["0.5.22 or earlier"]
    assert [launch.engine_version for launch in read(at(1, DICT) + at(2, BODY)).launches] == [
        "0.5.16 or later"
    ]
    found = read(at(1, REPR) + at(2, BODY) + at(30, REPR) + at(40, both))
    assert [launch.engine_version for launch in found.launches] == ["0.5.9–0.5.22", "0.5.3–0.5.14"]
    contradictory = read(at(1, BODY.replace("Decode batch,", "Decode batch.")) + at(2, BODY))
    assert [(launch.engine_version, launch.version_source) for launch in contradictory.launches] == [
        (None, None)
    ]


def test_a_version_that_becomes_known_later_is_told_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 600)
    monkeypatch.setattr(reading, "PORTION_LEVELS", 0)
    found = read(at(1, REPR) + at(2, BODY))
    assert [launch.engine_version for launch in found.launches] == ["0.5.22 or earlier", "0.5.9–0.5.22"]
    assert len({launch.key for launch in found.launches}) == 1


def test_values_of_the_dump_are_literals_or_stay_text() -> None:
    dump = read_dump(REPR)
    assert dump is not None
    assert not dump.is_cut
    assert dump.config["cuda_graph_bs"] == [1, 2, [3, 4]]
    assert json.loads(dump.config["json_model_override_args"]) == {"a": "it's, fine)"}
    assert dump.config["mode"] == "<Mode.NULL: 'null'>"
    assert dump.config["nested"] == "Foo(a=1, b='x, y')"
    assert (dump.config["ratio"], dump.config["negative"], dump.config["huge"]) == (0.9, -1, "inf")
    nested = read_dump(DICT)
    assert nested is not None
    assert nested.config["map"] == {"a": [1, {"b": "c}"}]}


def test_nothing_of_a_dump_is_run_and_deep_nesting_stays_text() -> None:
    deep = "[" * 500 + "]" * 500
    dump = read_dump(f"server_args=ServerArgs(model_path='m', x=__import__('os').system('false'), y={deep})")
    assert dump is not None
    assert dump.config["x"] == "__import__('os').system('false')"
    assert str(dump.config["y"]).startswith("[[[")


def test_a_dump_that_is_cut_gives_what_is_whole() -> None:
    found = read(at(1, REPR[: REPR.index("speculative_eagle_topk") + 25]) + at(2, BODY))
    (launch,) = found.launches
    assert launch.speculative.num_steps == 3
    assert launch.speculative.num_draft_tokens is None
    assert found.summary.refused == {"server_args cut off: the rest is missing": 1}


def test_a_second_dump_is_another_launch_and_says_what_changed() -> None:
    other = REPR.replace("num_steps=3", "num_steps=5")
    found = read(at(1, REPR) + at(2, BODY) + at(30, other) + at(40, BODY))
    first, second = found.launches
    assert first.key != second.key
    assert second.reason == "restarted with another configuration"
    (event,) = found.events("restart")
    assert event.detail["changes"] == {"speculative_num_steps": [3, 5]}
    assert [launch.reason for launch in read(at(1, REPR) + at(30, REPR)).launches] == [
        "first seen",
        "restarted",
    ]


def test_the_rate_of_each_launch_is_decided_by_itself() -> None:
    old = BODY.replace("accept rate: 0.78", "accept rate: 0.83")
    found = read(at(1, REPR) + at(2, old) + at(30, REPR) + at(40, BODY))
    events = found.events("rate_definition")
    assert [event.detail["definition"] for event in events] == [WITH_BONUS, STRICT]
    assert [event.time_ms for event in events] == [ms("2026-11-29 20:50:02"), ms("2026-11-29 20:50:40")]
    decided = [launch.definition for launch in found.summary.launches]
    assert [one and one.definition for one in decided] == [WITH_BONUS, STRICT]


def test_the_same_dump_written_twice_is_one_launch() -> None:
    assert len(read(at(1, REPR) + at(1, REPR) + at(2, BODY)).launches) == 1


def test_a_server_that_is_up_a_second_time_has_restarted() -> None:
    found = read(at(1, REPR) + at(2, READY) + at(3, BODY) + at(20, READY) + at(21, BODY))
    assert [launch.reason for launch in found.launches] == ["first seen", "restarted"]
    unknown = read(at(3, BODY) + at(20, READY) + at(21, BODY))
    assert [launch.time_ms for launch in unknown.launches] == [
        ms("2026-11-29 20:50:03"), ms("2026-11-29 20:50:20")
    ]  # fmt: skip


def test_the_key_of_a_launch_is_the_same_in_every_reading() -> None:
    assert read(at(1, REPR)).launches[0].key == read("noise\n" + at(1, REPR)).launches[0].key


def test_retractions_of_a_minute_are_one_event() -> None:
    line = "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.5 -> 0.9"
    found = read(at(1, BODY) + at(2, line) + at(3, line) + at(4, line))
    (event,) = found.events("retraction")
    assert (event.detail["lines"], event.detail["retracted_requests"]) == (3, 9)
    assert event.time_ms == ms("2026-11-29 20:50:02")
    assert found.summary.events["retraction"] == 3


ERRORS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
    "[rank0]:[E1129 20:50:45.1 ProcessGroupNCCL.cpp:632] [Rank 0] collective operation timeout",
    "torch.distributed.DistBackendError: NCCL error in: x.cpp",
    "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    "Subprocess detokenizer (pid=12) crashed with exit code 1. Triggering SIGQUIT for cleanup...",
    "Received sigquit from a child process. It usually means the child failed.",
)


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_an_event_at_the_time_of_the_line_before_it(error: str) -> None:
    found = read(
        at(1, BODY) + at(5, "Scheduler loop") + "Traceback (most recent call last):\n" + error + "\n"
    )
    (event,) = found.events("log_error")
    assert event.time_ms == ms("2026-11-29 20:50:05")
    assert event.message.startswith(error[:40])


def test_what_nccl_only_tells_is_no_error() -> None:
    assert (
        read(at(1, BODY) + at(2, "[I ProcessGroupNCCL.cpp:10] rank 0 using GPU 0")).events("log_error") == []
    )


def test_secrets_and_control_characters_of_a_line_are_not_stored() -> None:
    found = read(at(1, BODY) + at(2, "Scheduler hit an exception: api_key=sk-abcdefghijklmnop123456 \x07x"))
    (event,) = found.events("log_error")
    assert "sk-abcdef" not in event.message
    assert "\x07" not in event.message


def test_mirrors_of_a_rank_are_dropped_whatever_came_first() -> None:
    ranks = ("TP1", "TP0", "TP3", "TP2")
    found = read("".join(LINE.replace("TP0", rank) + "\n" for rank in ranks * 2))
    assert {level.labels["tp_rank"] for level in found.levels} == {"0"}
    assert len(found.values("spec.accept_length")) == 2
    assert (found.summary.decode_lines, found.summary.mirror_lines) == (8, 6)


def test_each_data_parallel_group_keeps_its_own_leader() -> None:
    ranks = ("DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3")
    found = read("".join(LINE.replace("TP0", rank) + "\n" for rank in ranks))
    leaders = {(level.labels["dp_rank"], level.labels["tp_rank"]) for level in found.levels}
    assert leaders == {("0", "0"), ("1", "2")}


def test_an_error_before_any_launch_is_kept_for_the_server() -> None:
    found = read(at(1, "Scheduler hit an exception: out of luck"))
    assert [record.kind for record in found.observations if isinstance(record, Event)] == ["log_error"]
    assert found.launches == []


def test_all_launches_are_counted_however_many() -> None:
    dump = "[2026-11-29 20:{:02}:{:02}] server_args=ServerArgs(model_path='m', port={})\n"
    found = read("".join(dump.format(at // 60, at % 60, at) for at in range(1_200)))
    assert len(found.launches) == 1_200
    assert "          and 1180 more launches" in list(report(found.summary))
