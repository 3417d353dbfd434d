"""Class of the target and layers of the draft: of `/model_info`, and of files on the collector's host."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors.fetch import Answer
from specscope_collectors.observations import HealthState, Launch, SpeculativeConfig
from specscope_collectors.sources.sglang_info.checkpoint_files import facts, facts_of
from specscope_collectors.sources.sglang_info.model import told_by, with_model

TARGET = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "text_config": {"num_hidden_layers": 61, "hidden_size": 7168},
}
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "hidden_size": 7168,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 30], "use_aux_hidden_state": True},
    "secret": "kept out",
}


def checkpoint(folder: Path, content: object) -> str:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(content))
    return str(folder)


def answer(body: bytes, state: HealthState = HealthState.OK) -> Answer:
    return Answer(url="http://x/model_info", state=state, duration_seconds=0.1, body=body)


def launch(model: str | None, draft: str | None) -> Launch:
    return Launch(
        key="k", time_ms=1, engine="sglang", model=model, config={"tp_size": 8},
        speculative=SpeculativeConfig(draft_model=draft),
    )  # fmt: skip


def test_what_decides_the_layers_is_kept_beside_the_configuration(tmp_path: Path) -> None:
    target, draft = checkpoint(tmp_path / "target", TARGET), checkpoint(tmp_path / "draft", DRAFT)
    found = with_model(launch(target, draft), answer(b'{"architectures": ["DeepseekV3ForCausalLM"]}')).config
    assert found["tp_size"] == 8
    assert found["specscope_model"] == {
        "source": f"{target}/config.json",
        "architectures": ["DeepseekV3ForCausalLM"],  # what runs, not what the file says
        "num_hidden_layers": 61,
        "hidden_size": 7168,
    }
    assert found["specscope_draft"]["eagle_aux_hidden_state_layer_ids"] == [-1, 2, 30]
    assert "secret" not in str(found)


def test_without_answer_and_files_nothing_is_added() -> None:
    before = launch("/nowhere/at/all", "org/draft-that-is-not-cached")
    assert with_model(before, answer(b"", HealthState.DISABLED)) == before


def test_a_draft_in_the_cache_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "models--org--draft"
    checkpoint(folder / "snapshots" / "0123abcd", DRAFT)
    checkpoint(folder / "snapshots" / "ffffffff", {"eagle_aux_hidden_state_layer_ids": [1, 1]})
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("0123abcd")
    assert facts_of("org/draft")["eagle_aux_hidden_state_layer_ids"] == [-1, 2, 30]
    (folder / "refs" / "main").write_text("../../../elsewhere")
    assert facts_of("org/draft") == {}


@pytest.mark.parametrize(
    "content",
    [b"[1]", b"", b'{"architectures"', b"{" * 5_000, b'{"a":"' + b"x" * (4 << 20) + b'"}', b"\xff\xfe"],
    ids=["list", "empty", "cut", "deep", "large", "bytes"],
)
def test_files_that_say_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    assert facts_of(str(tmp_path)) == {}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    assert facts_of(str(tmp_path)) == {}


@pytest.mark.parametrize("path", ["relative/../up", "../../etc", "models/tiny", "", "a/b/c", "\0/x", "/\0"])
def test_paths_that_are_nobodys_are_not_read(path: str) -> None:
    assert facts_of(path) == {}


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = [
    "architectures",
    "num_hidden_layers",
    "text_config",
    "eagle_config",
    "eagle_aux_hidden_state_layer_ids",
]


@given(st.dictionaries(st.sampled_from(NAMES), json_values))
def test_whatever_a_file_says_what_is_kept_is_small_and_typed(config: dict[str, Any]) -> None:
    found = facts(config)
    assert len(msgspec.json.encode(found)) < 4_000
    assert all(isinstance(name, str) for name in found.get("architectures", []))
    assert all(type(each) is int for each in found.get("eagle_aux_hidden_state_layer_ids", []))


@pytest.mark.parametrize("body", [b"", b"[]", b'{"architectures": "x"}', b'{"architectures": [1]}', b"{"])
def test_answers_that_name_no_class(body: bytes) -> None:
    assert told_by(answer(body)) == {}
