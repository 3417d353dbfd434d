"""``/server_info`` of every version becomes the right launch; its key is stable and unique per start."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.info.bodies import all_versions, captured, encoded, later, restarted, v0_5_2, v0_5_15

from specscope_collectors.identity import Identity
from specscope_collectors.observations import Launch
from specscope_collectors.sources.sglang_info import NotServerInfoError, parse_info, to_launch
from specscope_collectors.sources.sglang_info.fingerprint import identify
from specscope_collectors.sources.sglang_info.launch import expected_ranks, expected_reporters

VERSIONS = all_versions()


def launch_of(info: dict[str, Any]) -> Launch:
    return to_launch(parse_info(encoded(info)), key="k", time_ms=1)


def identity_of(info: dict[str, Any]) -> Identity:
    return identify(parse_info(encoded(info)))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_becomes_a_launch(version: str) -> None:
    launch = launch_of(VERSIONS[version])
    assert (launch.engine, launch.engine_version, launch.version_source) == ("sglang", version, "server_info")
    assert launch.speculative.algorithm == "EAGLE3"
    assert launch.model
    assert launch.served_model_name
    assert launch.dtype
    assert launch.speculative.draft_model
    assert launch.parallelism.tp_size
    assert "internal_states" not in launch.config
    assert not launch.is_demo
    assert msgspec.json.decode(msgspec.json.encode(launch), type=Launch) == launch


@pytest.mark.parametrize(
    ("version", "k", "topk", "d"),
    [("0.4.6.post5", 5, 4, 8), ("0.5.2", 5, 4, 8), ("0.5.8", 3, 1, 4), ("0.5.23", 3, 1, 4)],
)
def test_resolved_speculative_arguments(version: str, k: int, topk: int, d: int) -> None:
    speculative = launch_of(VERSIONS[version]).speculative
    assert (speculative.num_steps, speculative.eagle_topk, speculative.num_draft_tokens) == (k, topk, d)


def test_adaptive_speculation_shows_the_tier_in_force_unless_ranks_disagree() -> None:
    speculative = launch_of(v0_5_15()).speculative
    assert (speculative.num_steps, speculative.num_draft_tokens, speculative.adaptive) == (7, 8, True)
    assert launch_of(later(v0_5_15())).speculative.num_steps == 3


def test_without_speculation_nothing_is_claimed() -> None:
    launch = launch_of(captured("0.5.23-no-speculation"))
    assert launch.speculative.algorithm is None
    assert launch.speculative.num_steps is None


@pytest.mark.parametrize("version", VERSIONS)
def test_one_running_process_always_gives_the_same_key(version: str) -> None:
    info = VERSIONS[version]
    assert encoded(later(info)) != encoded(info)
    assert identity_of(later(info)) == identity_of(info)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_restart_with_the_same_flags_gives_another_key(version: str) -> None:
    first, second = identity_of(VERSIONS[version]), identity_of(restarted(VERSIONS[version]))
    assert first.configuration == second.configuration
    assert first.process != second.process
    assert first.key("") != second.key("")


def test_start_up_times_tell_restarts_apart_even_with_a_fixed_seed() -> None:
    info = captured("0.5.23")
    again = restarted(info) | {"random_seed": info["random_seed"]}
    assert identity_of(info).certain
    assert identity_of(info).process != identity_of(again).process
    assert not identity_of(v0_5_2()).certain


def test_the_tokenizers_late_entry_changes_nothing() -> None:
    early = captured("0.5.23")
    del early["startup_time"]["tokenizer_e2e"]
    assert identity_of(early) == identity_of(captured("0.5.23"))


@pytest.mark.parametrize(
    ("name", "value"), [("speculative_num_steps", 2), ("model_path", "other"), ("version", "0.5.24")]
)
def test_a_changed_argument_changes_the_configuration_only(name: str, value: object) -> None:
    before, after = identity_of(captured("0.5.23")), identity_of(captured("0.5.23") | {name: value})
    assert before.configuration != after.configuration
    assert before.process == after.process


def test_a_threshold_changed_in_the_running_schedulers_is_a_configuration_change() -> None:
    info = captured("0.5.23")
    info["internal_states"][0]["speculative_accept_threshold_single"] = 0.9
    assert identity_of(info).configuration != identity_of(captured("0.5.23")).configuration


def test_secrets_do_not_reach_the_launch() -> None:
    info = v0_5_2() | {"launch_command": "serve --api-key sk-engine-key-123456 --tp 8"}
    assert "sk-engine-key-123456" not in repr(launch_of(info))
    assert launch_of(info).config["api_key"] == "[redacted]"


def test_chosen_environment_without_secrets() -> None:
    info = captured("0.5.23")
    info["internal_states"][0]["env_vars"] = {
        "NCCL_DEBUG": "INFO", "SGLANG_ENABLE_METRICS_DEVICE_TIMER": "1", "HOME": "/root",
        "HF_TOKEN": "hf_secret", "SGLANG_API_KEY": "very-secret",
    }  # fmt: skip
    launch = launch_of(info)
    assert launch.environment == {
        "NCCL_DEBUG": "INFO", "SGLANG_ENABLE_METRICS_DEVICE_TIMER": "1", "SGLANG_API_KEY": "[redacted]",
    }  # fmt: skip
    assert "hf_secret" not in repr(launch)


def test_the_demo_is_marked() -> None:
    assert launch_of(captured("0.5.23") | {"specscope_demo": True}).is_demo


@pytest.mark.parametrize(
    ("sizes", "reporters", "ranks"),
    [
        ({"tp_size": 8}, 1, 8),
        ({"tp_size": 8, "pp_size": 2}, 2, 16),
        ({"tp_size": 4, "dp_size": 2}, 2, 8),
        ({"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}, 8, 8),
    ],
)
def test_expected_ranks(sizes: dict[str, Any], reporters: int, ranks: int) -> None:
    parallelism = launch_of(captured("0.5.23") | sizes).parallelism
    assert (expected_reporters(parallelism), expected_ranks(parallelism)) == (reporters, ranks)


@pytest.mark.parametrize(
    ("body", "garbled"),
    [
        (b"<html>", False),
        (b"", False),
        (b"[]", False),
        (b"{}", False),
        (b'{"model_path": "x"}', False),
        (encoded(captured("0.5.23"))[:5000], True),
        (b'{"model_path":' + b"[" * 200_000, True),
        (b'{"model_path": NaN}', True),
        (b"\xff\xfe", False),
    ],
)
def test_what_is_no_server_info_is_refused(body: bytes, garbled: bool) -> None:
    with pytest.raises(NotServerInfoError) as caught:
        parse_info(body)
    assert caught.value.garbled is garbled
    assert str(caught.value)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(captured("0.5.23"))), JUNK, max_size=12))
def test_any_value_in_any_field_gives_a_launch_that_travels(junk: dict[str, Any]) -> None:
    info = copy.deepcopy(captured("0.5.23")) | junk
    launch = to_launch(parse_info(json.dumps(info).encode()), key="k", time_ms=1)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(launch), type=Launch).engine == "sglang"


def test_a_huge_configuration_loses_its_largest_values_and_not_the_launch() -> None:
    info = VERSIONS["0.5.23"] | {f"extra{at}": ["v" * 5_000] * 20 for at in range(30)}
    launch = launch_of(info)
    assert len(json.dumps(launch.config)) < 500_000
    assert launch.config["extra3"] == "[too large]"
    assert launch.config["speculative_algorithm"] == "EAGLE3"
    assert launch.speculative == launch_of(VERSIONS["0.5.23"]).speculative
    assert launch_of(VERSIONS["0.5.23"] | {"k" * 7_000 + str(at): 1 for at in range(100)}).config == {}
