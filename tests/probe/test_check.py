"""`specscope probe check` over small source trees: what it finds, what it misses, what it says to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specscope_probe import cli
from specscope_probe.conformance import examine
from specscope_probe.source_tree import NotInstalledError, SourceTree

SOURCES = {
    "managers/scheduler.py": """
class Mixin:
    def event_loop_overlap(self): ...
class Scheduler(Mixin, elsewhere.Other):
    def event_loop_normal(self): ...
""",
    "managers/batch_result_processor.py": """
class SchedulerBatchResultProcessor:
    def _resolve_spec_v2_tokens(self): ...
""",
    "model_executor/model_runner.py": "class ModelRunner:\n    def forward(self): ...\n",
    "model_executor/hook_manager.py": "",
    "speculative/eagle_worker_v2.py": """
class Base:
    def forward_batch_generation(self): ...
class EagleDraftWorker:
    def draft(self): ...
    def _draft_extend_for_decode(self): ...
    def _draft_extend_for_prefill(self): ...
class EAGLEWorkerV2(Base):
    def verify(self): ...
""",
}


def tree(folder: Path, **replaced: str) -> SourceTree:
    """Write a small SGLang; keyword arguments replace text in the worker's file."""
    root = folder / "sglang" / "srt"
    for name, text in SOURCES.items():
        for old, new in replaced.items():
            text = text.replace(old, new)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (folder / "sglang-0.9.0.dist-info").mkdir(exist_ok=True)
    return SourceTree(root, "0.9.0")


def test_a_whole_engine_conforms_and_inherited_methods_count(tmp_path: Path) -> None:
    found = examine(tree(tmp_path))
    assert found.problems == ()
    assert found.loops == ("event_loop_normal", "event_loop_overlap")
    assert found.loaders == ("forward-hooks",)
    [worker] = found.workers
    assert worker.seams["cycle"] == "EAGLEWorkerV2.forward_batch_generation"
    assert worker.missing == {}


@pytest.mark.parametrize(
    ("gone", "problem"),
    [
        ("verify", "EAGLEWorkerV2 lacks verify"),
        ("_draft_extend_for_decode", "EAGLEWorkerV2 lacks draft_extend"),
        ("_resolve_spec_v2_tokens", "EAGLEWorkerV2 lacks results"),
        ("event_loop_normal", "the scheduler has no event_loop_normal"),
        ("EAGLEWorkerV2", "no EAGLE worker was found"),
    ],
)
def test_what_an_engine_renamed_is_a_problem(tmp_path: Path, gone: str, problem: str) -> None:
    assert problem in examine(tree(tmp_path, **{gone: "renamed"})).problems


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = tree(tmp_path)
    (source.root / "managers" / "broken.py").write_text("class (:", encoding="utf-8")
    [problem] = examine(source).problems
    assert problem.startswith("managers/broken.py")


def test_classes_that_inherit_from_each_other_end(tmp_path: Path) -> None:
    source = tree(tmp_path)
    circle = "class A(B):\n    def a(self): ...\nclass B(A):\n    def b(self): ...\n"
    (source.root / "managers" / "circle.py").write_text(circle, encoding="utf-8")
    assert source.methods("A") == {"a", "b"}
    assert source.methods("Nobody") is None


def check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: SourceTree, *arguments: str
) -> tuple[int, str]:
    """Run the command over that source and return its status and output."""
    monkeypatch.setattr(cli, "installed", lambda: source)
    status = cli.main(["check", *arguments])
    return status, capsys.readouterr().out


def test_the_command_prints_and_its_status_tells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, text = check(monkeypatch, capsys, tree(tmp_path))
    assert status == 0
    assert "everything promised is measured" in text
    assert "start SGLang with SPECSCOPE_PROBE=1" in text
    status, text = check(monkeypatch, capsys, tree(tmp_path, verify="renamed"))
    assert status == 1
    assert "PROBLEM  EAGLEWorkerV2 lacks verify" in text
    assert "no   preparing the verify forward" in text


def test_json_says_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, text = check(monkeypatch, capsys, tree(tmp_path), "--format", "json")
    found: dict[str, Any] = json.loads(text)
    assert (status, found["version"], found["problems"]) == (0, "0.9.0", [])
    assert found["workers"][0]["seams"]["draft"] == "EagleDraftWorker.draft"


def test_without_an_engine_it_says_where_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing() -> SourceTree:
        raise NotInstalledError("there is no SGLang in this environment; run this elsewhere")

    monkeypatch.setattr(cli, "installed", nothing)
    assert cli.main(["check"]) == 3
    assert "there is no SGLang" in capsys.readouterr().err
