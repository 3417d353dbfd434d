"""No planted secret survives; what is no secret does."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specscope_collectors.redaction import MAX_DEPTH, REDACTED, TOO_DEEP, redact, redact_text

INFO = Path(__file__).parent.parent / "info" / "fixtures"

SECRET = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789_-.!$", min_size=12, max_size=40).map(
    lambda t: f"Zq{t}"
)
NAMES = st.sampled_from([
    "api_key", "admin_api_key", "HF_TOKEN", "hf_token", "password", "ssl_keyfile_password",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "Authorization", "client_secret", "WANDB_API_KEY",
    "auth_token", "watermark_key_b", "apiKey", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "accessToken",
    "private_key", "db_passwd", "credentials",
])  # fmt: skip
INNOCENT: dict[str, Any] = {
    "speculative_num_draft_tokens": 4, "max_total_tokens": 8192, "speculative_token_map": "maps/hot.pt",
    "tokenizer_path": "models/x", "tokenizer_mode": "auto", "num_reserved_decode_tokens": 512,
    "eos_token": "</s>", "bucket_inter_token_latency": [0.1, 0.2], "ssl_keyfile": "/etc/tls/server.key",
    "token_capacity": 8192, "api_key": None, "enable_tokenizer_batch_encode": False, "tokens": "8192",
    "sampling_backend": "pytorch",
    "launch": "python -m sglang.launch_server --max-total-tokens 8192 --tokenizer-path models/x --port 30000",
    "piecewise_cuda_graph_tokens": [4, 8], "AWS_REGION": "eu-central-1", "enable_metrics": True,
    "random_seed": 60969, "url": "http://gpu1:30000/v1", "note": "the token is counted",
    "kv_cache_dtype": "auto", "NCCL_DEBUG": "INFO",
}  # fmt: skip


def planted(secret: str, name: str, place: str) -> Any:
    flag = f"--{name.replace('_', '-')}"
    return {
        "named": {name: secret},
        "named list": {name: [secret]},
        "named dict": {name: {"value": secret}},
        "flag": {"launch_command": f"serve --port 1 {flag} {secret} --tp 2"},
        "flag equals": {"launch_command": f"serve {flag}={secret} --tp 2"},
        "argv": ["serve", flag, secret, "--tp", "2"],
        "argv equals": ["serve", f"{flag}={secret}"],
        "environment": f"{name}={secret} python -m x",
        "json in text": {"extra": json.dumps({"deep": [{name: secret}]})},
        "json in flag": {"launch_command": "--extra '" + json.dumps({name: secret}) + "'"},
        "query": f"http://h/x?a=1&{name}={secret}&b=2",
        "userinfo": f"see http://user:{secret}@gpu1:30000/x",
        "bearer": f"sent Authorization: Bearer {secret.replace('!', '').replace('$', '')}",
        "pair": {"headers": [["Accept", "text/plain"], [name, secret]]},
        "entry": {"env": [{"name": name, "value": secret}]},
        "json in json in text": {"extra": json.dumps({"deep": json.dumps({"deeper": {name: secret}})})},
        "dsn": f"postgres://user:{secret}/x@{secret}@db/x",
        "long": f"{name}={secret * 20}",
        "mentioned elsewhere": [{name: secret}, f"odd form <<{secret}>> in prose", {f"key {secret}": 1}],
    }[place]


PLACES = st.sampled_from([
    "named", "named list", "named dict", "flag", "flag equals", "argv", "argv equals", "environment",
    "json in text", "json in flag", "query", "userinfo", "mentioned elsewhere",
    "pair", "entry", "json in json in text", "dsn", "long",
])  # fmt: skip


def nest(value: Any, path: list[bool]) -> Any:
    for as_list in path:
        value = [1, value] if as_list else {"x": value, "num_draft_tokens": 4}
    return value


@settings(deadline=None)
@given(SECRET, NAMES, PLACES, st.lists(st.booleans(), max_size=12))
def test_no_planted_secret_survives_at_any_depth(
    secret: str, name: str, place: str, path: list[bool]
) -> None:
    cleaned = json.dumps(redact(nest(planted(secret, name, place), path)))
    assert secret not in cleaned
    assert REDACTED in cleaned


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=12))
def test_what_is_no_secret_survives_unchanged(path: list[bool]) -> None:
    assert redact(nest(INNOCENT, path)) == nest(INNOCENT, path)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_handled_and_redaction_is_stable(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@pytest.mark.parametrize("text", [
    "hf_" + "a1B2" * 6, "AKIA" + "A1B2C3D4E5F6G7H8", "xoxb-1234567890-abc", "Bearer abcdef123456",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
])  # fmt: skip
def test_known_forms_are_found_without_a_name(text: str) -> None:
    cleaned = redact_text(f"before {text} after")
    assert text not in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")


def test_our_own_key_is_removed_wherever_it_occurs() -> None:
    assert redact({"note": "we sent engine-key-1"}, known=("engine-key-1", None)) == {
        "note": f"we sent {REDACTED}"
    }


def test_a_secret_of_an_argument_vector_is_removed_wherever_it_occurs() -> None:
    cleaned = redact({"argv": ["--api-key", "odd one", "--port", "1"], "note": "given <odd one>"})
    assert cleaned == {"argv": ["--api-key", REDACTED, "--port", "1"], "note": f"given <{REDACTED}>"}


def test_bottomless_nesting_and_endless_text_stay_cheap() -> None:
    deep: Any = "end"
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    assert TOO_DEEP in json.dumps(redact(deep))
    assert len(redact_text("word " * 100_000)) < 10_000
    assert redact({"seed": 2**70}) == {"seed": str(2**70)}


@pytest.mark.parametrize("name", ["server_info-0.5.23.json", "server_info-0.5.8.json"])
def test_a_real_server_info_loses_nothing_but_what_the_engine_redacted(name: str) -> None:
    info = json.loads((INFO / name).read_text())
    info |= info.pop("internal_states")[0]
    cleaned = redact(info)
    changed = {key for key, value in info.items() if cleaned[key] != value}
    assert changed <= {"watermark_config", "watermark_key", "watermark_key_b"}


@pytest.mark.parametrize("name", ["OPENAI_KEY", "DB_PASS", "PGPASSWORD", "AZURE_STORAGE_CONNECTION_STRING"])
def test_names_of_other_tools(name: str) -> None:
    assert redact({name: "Zq9vLr4x"}) == {name: REDACTED}


@pytest.mark.parametrize("text", ["token=a:" * 1_000, "x://a:" * 1_300, "x://" + "a:" * 3_990, 'a="' * 2_600])
def test_hostile_text_takes_no_long(text: str) -> None:
    started = time.thread_time()
    redact({"x": text})
    assert time.thread_time() - started < 1.0


def test_what_is_redacted_is_left_as_it_is() -> None:
    once = redact_text("HF_TOKEN=Zq9vLr4x --api-key Zq9vLr4y postgres://u:Zq9v/Lr@h/db")
    assert redact_text(once) == once
