"""How SGLang reads the ids of a draft, by class of the target model.

Read in the code of 0.5.8, 0.5.15, 0.5.20 and 0.5.23 (`set_eagle3_layers_to_capture` and the decoder loops);
0.4.6.post5 and 0.5.2 had the first era's rule. A class is known where a version that was read registers it
and gives it that method, itself or by inheritance.
"""

from __future__ import annotations

from dataclasses import dataclass

from specscope_collectors.layer_ids.rules import (
    OUTPUT,
    OUTPUT_DEEPER,
    OUTPUT_IF_FIRST_IS_1,
    OUTPUT_UNLESS_LAST,
    Era,
    Rule,
)
from specscope_collectors.layer_ids.versions import Version

FIRST_READ, LAST_READ = (0, 4, 6), (0, 5, 23)
GRAPHS_BEFORE_IDS = ((0, 5, 6), (0, 5, 10))
"""Versions that capture graphs of verification before the draft's ids are set: they hold default layers."""
SOURCE = "SGLang's set_eagle3_layers_to_capture"


@dataclass(frozen=True, slots=True)
class Family:
    """Classes that read ids alike."""

    name: str
    eras: tuple[Era, ...]
    classes: frozenset[str]
    last_captured_from: Version | None = None
    """Version from which the state behind the last layer is captured too; None = never seen."""


def _all_along(rule: Rule) -> tuple[Era, ...]:
    return (Era(FIRST_READ, LAST_READ, rule),)


FAMILIES = (
    Family(
        "DeepSeek, Kimi K2 and K2.5",
        (Era(FIRST_READ, (0, 5, 8), OUTPUT), Era((0, 5, 15), LAST_READ, OUTPUT_IF_FIRST_IS_1)),
        frozenset({
            "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM",
            "MistralLarge3ForCausalLM", "GlmMoeDsaForCausalLM", "Glm4MoeLiteForCausalLM",
            "KimiK25ForConditionalGeneration",
        }),
    ),
    Family(
        "gpt-oss",
        (Era(FIRST_READ, (0, 5, 15), OUTPUT), Era((0, 5, 20), LAST_READ, OUTPUT_UNLESS_LAST)),
        frozenset({"GptOssForCausalLM"}),
        (0, 5, 20),
    ),
    Family(
        "MiniMax M3 (vision)", _all_along(OUTPUT_DEEPER),
        frozenset({"MiniMaxM3SparseForConditionalGeneration"}), (0, 5, 20),
    ),
    Family("MiniMax M3", _all_along(OUTPUT), frozenset({"MiniMaxM3SparseForCausalLM"}), (0, 5, 20)),
    Family(
        "most models", _all_along(OUTPUT),
        frozenset({
            "ApertusForCausalLM", "BailingMoEForCausalLM", "BailingMoeForCausalLM", "BailingMoeV2ForCausalLM",
            "SarvamMoEForCausalLM", "Cosmos3ForConditionalGeneration", "ExaoneMoEForCausalLM",
            "ExaoneMoeForCausalLM", "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration",
            "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration",
            "Glm4MoeForCausalLM", "Glm5NextForConditionalGeneration", "IQuestCoderForCausalLM",
            "InternLM3ForCausalLM", "InternS1ProForConditionalGeneration",
            "InternS2MobiusForConditionalGeneration", "InternS2PreviewForConditionalGeneration",
            "Llama4ForCausalLM", "Llama4ForConditionalGeneration", "LlamaForCausalLM",
            "LongcatFlashForCausalLM", "MellumForCausalLM", "MiniMaxM2ForCausalLM", "Ministral3ForCausalLM",
            "MistralForCausalLM", "Phi3ForCausalLM", "Qwen2ForCausalLM", "Qwen2MoeForCausalLM",
            "Qwen2_5_VLForConditionalGeneration", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM",
            "Qwen3NextForCausalLM", "Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
            "Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForCausalLM",
            "Qwen3_5MoeForConditionalGeneration", "Qwen4ExpForConditionalGeneration", "TeleFLMForCausalLM",
        }),
    ),
)  # fmt: skip


def family_of(model_class: str | None) -> Family | None:
    """Return the family of a class; None = not known here."""
    return next((family for family in FAMILIES if model_class in family.classes), None)
