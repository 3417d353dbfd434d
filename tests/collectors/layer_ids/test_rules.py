"""What ids mean, case by case: versions, classes and tools, and faults that were made public."""

from __future__ import annotations

import pytest

from specscope_collectors.layer_ids import Question, System, resolve

DEEPSEEK, KIMI = "DeepseekV3ForCausalLM", "KimiK25ForConditionalGeneration"
LLAMA, GPT_OSS = "LlamaForCausalLM", "GptOssForCausalLM"
Ids = tuple[int, ...]

SGLANG_CASES: dict[str, tuple[str, str, int, Ids | None, Ids]] = {
    "story trained, 0.5.8": (DEEPSEEK, "0.5.8", 61, (2, 30, 58), (3, 31, 59)),
    "story trained, 0.5.15": (DEEPSEEK, "0.5.15", 61, (2, 30, 58), (2, 30, 58)),
    "story trained, 0.5.23": (KIMI, "0.5.23", 61, (2, 30, 58), (2, 30, 58)),
    "story wrong, 0.5.8": (DEEPSEEK, "0.5.8", 61, (-1, 2, 30), (0, 3, 31)),
    "story wrong, 0.5.15: two slots": (DEEPSEEK, "0.5.15", 61, (-1, 2, 30), (2, 30)),
    "other convention, 0.5.8": (DEEPSEEK, "0.5.8", 61, (1, 29, 57), (2, 30, 58)),
    "other convention, 0.5.15": (DEEPSEEK, "0.5.15.post1", 61, (1, 29, 57), (2, 30, 58)),
    "default, whatever the version": (DEEPSEEK, "0.5.8", 61, None, (2, 30, 58)),
    "GLM lite follows DeepSeek": ("Glm4MoeLiteForCausalLM", "0.5.20", 47, (2, 20, 40), (2, 20, 40)),
    "llama 0.5.6": (LLAMA, "0.5.6", 32, (1, 15, 28), (2, 16, 29)),
    "llama 0.5.23": (LLAMA, "0.5.23", 32, (1, 15, 28), (2, 16, 29)),
    "llama default": (LLAMA, "0.5.23", 80, None, (2, 40, 77)),
    "llama, by depth and once": (LLAMA, "0.5.23", 32, (28, 1, 15, 1), (2, 16, 29)),
    "llama, behind the last layer": (LLAMA, "0.5.23", 32, (1, 15, 31), (2, 16)),
    "qwen default": ("Qwen3ForCausalLM", "0.5.12", 36, None, (2, 18, 33)),
    "gpt-oss 0.5.15": (GPT_OSS, "0.5.15", 36, (2, 18, 36), (3, 19)),
    "gpt-oss 0.5.20": (GPT_OSS, "0.5.20", 36, (2, 18, 36), (2, 18, 36)),
    "gpt-oss 0.5.23, not to the end": (GPT_OSS, "0.5.23", 36, (1, 17, 32), (2, 18, 33)),
    "MiniMax M3 vision is deeper by default": (
        "MiniMaxM3SparseForConditionalGeneration", "0.5.23", 62, None, (3, 32, 60),
    ),
    "newer than what was read": (DEEPSEEK, "0.6.1", 61, (2, 30, 58), (2, 30, 58)),
    "unfinished 0.5.9 is after 0.5.8: both rules agree": (DEEPSEEK, "0.5.9rc1", 61, (1, 29, 57), (2, 30, 58)),
}  # fmt: skip


@pytest.mark.parametrize("name", SGLANG_CASES)
def test_sglang(name: str) -> None:
    model_class, version, layers, ids, expected = SGLANG_CASES[name]
    found = resolve(
        Question(system=System.SGLANG, ids=ids, version=version, model_class=model_class, layers=layers)
    )
    assert found.boundaries == expected, found
    assert found.rule
    assert found.source
    assert not found.reason
    assert found.is_default == (ids is None)


UNTOLD: dict[str, tuple[Question, str, tuple[Ids, ...]]] = {
    "between the versions that were read": (
        Question(system=System.SGLANG, ids=(2, 30, 58), version="0.5.10", model_class=DEEPSEEK, layers=61),
        "0.5.10 lies between versions", ((3, 31, 59), (2, 30, 58)),
    ),
    "a range from a log": (
        Question(system=System.SGLANG, ids=(2, 30, 58), version="0.5.3–0.5.14", model_class=KIMI, layers=61),
        "0.5.3–0.5.14 lies between", ((3, 31, 59), (2, 30, 58)),
    ),
    "no version": (
        Question(system=System.SGLANG, ids=(2, 30, 58), model_class=DEEPSEEK, layers=61),
        "the version is not known", ((3, 31, 59), (2, 30, 58)),
    ),
    "an unknown class": (
        Question(system=System.SGLANG, ids=(2, 30), version="0.5.23", model_class="Foo", layers=61),
        "rule for Foo is not known here", ((2, 30), (3, 31)),
    ),
    "no class": (
        Question(system=System.SGLANG, ids=(2,), version="0.5.8"), "class of the model is not known", ((3,),)
    ),
    "default without layers": (
        Question(system=System.SGLANG, ids=None, version="0.5.8", model_class=LLAMA), "number of decoder", ()
    ),
    "default of a shallow model": (
        Question(system=System.SGLANG, ids=None, version="0.5.8", model_class=LLAMA, layers=4), "shallow", ()
    ),
    "gpt-oss without layers": (
        Question(system=System.SGLANG, ids=(2, 18), version="0.5.23", model_class=GPT_OSS),
        "number of decoder layers is needed", (),
    ),
    "vLLM below 0": (Question(system=System.VLLM, ids=(-1, 2, 30), layers=61), "[-1] no meaning", ()),
    "EAGLE beyond the model": (Question(system=System.EAGLE, ids=(2, 70), layers=61), "out of range", ()),
    "the post-norm state": (
        Question(system=System.HUGGING_FACE, ids=(2, 61), layers=61), "behind the final norm", ()
    ),
    "the last by -1": (Question(system=System.HUGGING_FACE, ids=(-1,)), "behind the final norm", ()),
    "nothing": (Question(system=System.VLLM, ids=()), "the list is empty", ()),
    "far out": (Question(system=System.SPECFORGE, ids=(10**9,)), "beyond 4096", ()),
    "a model of no layers": (Question(system=System.EAGLE, ids=(1,), layers=0), "no 0 decoder layers", ()),
    "ids that a tool takes raw": (Question(system=System.MODELOPT_VLLM, ids=None), "no default", ()),
}  # fmt: skip


@pytest.mark.parametrize("name", UNTOLD)
def test_what_cannot_be_told_says_why(name: str) -> None:
    question, reason, candidates = UNTOLD[name]
    found = resolve(question)
    assert found.boundaries is None
    assert reason in found.reason
    assert found.candidates == candidates


TOOL_CASES: dict[str, tuple[System, str | None, Ids | None, Ids]] = {
    "EAGLE": (System.EAGLE, None, (2, 30, 58), (2, 30, 58)),
    "EAGLE default": (System.EAGLE, None, None, (2, 30, 58)),
    "hidden_states": (System.HUGGING_FACE, None, (2, 30, 58), (2, 30, 58)),
    "vLLM": (System.VLLM, "0.11.0", (2, 30, 61), (2, 30, 61)),
    "SpecForge": (System.SPECFORGE, None, (2, 30, 58), (3, 31, 59)),
    "SpecForge default": (System.SPECFORGE, None, None, (2, 30, 58)),
    "SpecForge, the embedding": (System.SPECFORGE, None, (-1, 2, 30), (0, 3, 31)),
    "speculators 0.4": (System.SPECULATORS, "0.4.0", (2, 30, 58, 60), (3, 31, 59, 61)),
    "speculators 0.4 default: one deeper than vLLM": (System.SPECULATORS, "0.4.0", None, (3, 31, 59, 61)),
    "speculators 0.5": (System.SPECULATORS, "0.5.1", (2, 30, 58), (2, 30, 58)),
    "speculators 0.5 default": (System.SPECULATORS, "0.5.0", None, (2, 30, 58)),
    "ModelOpt hf": (System.MODELOPT, None, (2, 5, 8), (3, 6, 9)),
    "ModelOpt vllm: the same flag, another dump": (System.MODELOPT_VLLM, None, (2, 5, 8), (2, 5, 8)),
    "AngelSlim": (System.ANGELSLIM, None, (1, 29, 57), (2, 30, 58)),
    "read from the model": (System.SGLANG_MODEL, None, (58, 2, 30), (2, 30, 58)),
    "boundaries": (System.BOUNDARIES, None, (0, 3, 31), (0, 3, 31)),
}


@pytest.mark.parametrize("name", TOOL_CASES)
def test_tools(name: str) -> None:
    system, version, ids, expected = TOOL_CASES[name]
    found = resolve(Question(system=system, ids=ids, version=version, layers=61))
    assert found.boundaries == expected, found


Both = tuple[Question, Question, Ids, Ids]
PUBLIC: dict[str, Both] = {
    "sglang PR 25454, Kimi: ids of the other convention got + 1": (
        Question(system=System.SGLANG, ids=(2, 30, 58), version="0.5.8", model_class=DEEPSEEK, layers=61),
        Question(system=System.EAGLE, ids=(2, 30, 58), layers=61), (3, 31, 59), (2, 30, 58),
    ),
    "sglang PR 32334, gpt-oss: the last boundary was not captured, two slots of three": (
        Question(system=System.SGLANG, ids=(2, 12, 24), version="0.5.15", model_class=GPT_OSS, layers=24),
        Question(system=System.SGLANG, ids=(2, 12, 24), version="0.5.23", model_class=GPT_OSS, layers=24),
        (3, 13), (2, 12, 24),
    ),
    "vllm PR 43671, MiniMax: trained through SGLang, served raw": (
        Question(
            system=System.SGLANG, ids=(1, 30, 58), version="0.5.15", model_class="MiniMaxM2ForCausalLM",
            layers=62,
        ),
        Question(system=System.VLLM, ids=(1, 30, 58), layers=62), (2, 31, 59), (1, 30, 58),
    ),
    "vllm PR 50170, Llama 70B: a guess where the draft names none": (
        Question(system=System.VLLM, ids=None, layers=80), Question(system=System.VLLM, ids=(1, 39, 76)),
        (2, 40, 77), (1, 39, 76),
    ),
    "tokenspeed PR 526: hard-coded ids": (
        Question(system=System.EAGLE, ids=None, layers=48), Question(system=System.EAGLE, ids=(24, 30, 36)),
        (2, 24, 45), (24, 30, 36),
    ),
    "TorchSpec issue 87: the last state one layer early": (
        Question(system=System.HUGGING_FACE, ids=(35,), layers=36),
        Question(system=System.VLLM, ids=(36,), layers=36), (35,), (36,),
    ),
    "speculators 0.4 dumps, vLLM serves its default": (
        Question(system=System.SPECULATORS, ids=(2, 18, 33, 35), version="0.4.0", layers=36),
        Question(system=System.VLLM, ids=None, layers=36), (3, 19, 34, 36), (2, 18, 33),
    ),
    "ModelOpt, the same --aux-layers by two scripts": (
        Question(system=System.MODELOPT, ids=(2, 5, 8)), Question(system=System.MODELOPT_VLLM, ids=(2, 5, 8)),
        (3, 6, 9), (2, 5, 8),
    ),
}  # fmt: skip
"""Of the public cases those that ids decide; the others (residual, norm, rotation, vocabulary, template,
rope, ranks, precision) leave ids as they are and are told from states."""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_faults_are_seen_in_ids_alone(name: str) -> None:
    one, other, first, second = PUBLIC[name]
    assert resolve(one).boundaries == first
    assert resolve(other).boundaries == second
    assert first != second


def test_ids_that_are_left_out_are_named() -> None:
    found = resolve(
        Question(system=System.SGLANG, ids=(-1, 2, 30), version="0.5.23", model_class=DEEPSEEK, layers=61)
    )
    assert found.dropped == (-1,)
    assert any("2 slots instead of 3" in note for note in found.notes)
    nothing = resolve(
        Question(system=System.SGLANG, ids=(90, 91), version="0.5.23", model_class=LLAMA, layers=32)
    )
    assert nothing.boundaries == ()
    assert any("fc is skipped" in note for note in nothing.notes)


def test_a_default_is_called_a_guess() -> None:
    found = resolve(Question(system=System.SGLANG, ids=None, version="0.5.23", model_class=LLAMA, layers=32))
    assert found.is_default
    assert any("guessed" in note for note in found.notes)
