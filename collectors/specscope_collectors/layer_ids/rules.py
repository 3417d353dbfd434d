"""Rules by which ids become boundaries, and the tools that keep one rule or change it with a version.

Sources: the tools' own code at the versions that are named. `sglang` has the rules of SGLang by class of
model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from specscope_collectors.layer_ids.versions import NEWEST, OLDEST, Span, Version

Ids = tuple[int, ...]


class System(StrEnum):
    """Whose ids they are."""

    SGLANG = "sglang"
    """Of a draft's configuration (`eagle_aux_hidden_state_layer_ids`), as `set_eagle3_layers_to_capture`
    takes them."""
    SGLANG_MODEL = "sglang-model"
    """`layers_to_capture` as it stands in the running model."""
    VLLM = "vllm"
    EAGLE = "eagle"
    HUGGING_FACE = "hf"
    """Indices of `output_hidden_states`."""
    SPECFORGE = "specforge"
    SPECULATORS = "speculators"
    MODELOPT = "modelopt"
    """Its hf and trtllm scripts."""
    MODELOPT_VLLM = "modelopt-vllm"
    ANGELSLIM = "angelslim"
    BOUNDARIES = "boundaries"
    """Boundaries already."""


class NeedsLayersError(ValueError):
    """The rule asks for the number of decoder layers."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to read ids."""

    words: str
    shift: Callable[[Ids, int | None], int]
    """What is added to every id, of ids (not empty) and the number of layers. Raises NeedsLayersError."""
    least: int = 0
    """Smallest id that means something; a tool's only, engines drop what they do not meet."""
    default: Callable[[int], Ids] | None = None
    """Boundaries without ids, of the number of layers; None = there is no default."""


@dataclass(frozen=True, slots=True)
class Era:
    """A rule and the versions that it was read in; between two eras either may hold."""

    first: Version
    last: Version
    rule: Rule


def _greatest_is_last(ids: Ids, layers: int | None) -> int:
    if layers is None:
        raise NeedsLayersError
    return 0 if max(ids) == layers else 1


def middle(layers: int) -> Ids:
    """Return the boundaries that EAGLE-3 takes when nothing is named."""
    return (2, layers // 2, layers - 3)


def deeper(layers: int) -> Ids:
    """Return the same ids read as outputs: one deeper."""
    return tuple(place + 1 for place in middle(layers))


OUTPUT_WORDS, INPUT_WORDS = "b = X + 1 (what layer X puts out)", "b = X (what layer X takes in)"
OUTPUT = Rule(OUTPUT_WORDS, lambda ids, layers: 1, least=-1, default=middle)
INPUT = Rule(INPUT_WORDS, lambda ids, layers: 0, default=middle)
OUTPUT_DEEPER = Rule(OUTPUT_WORDS, lambda ids, layers: 1, least=-1, default=deeper)
OUTPUT_FOUR = Rule(OUTPUT_WORDS, lambda ids, layers: 1, default=lambda n: (*deeper(n), n))
OUTPUT_IF_FIRST_IS_1 = Rule(
    "b = X + 1 if the first id is 1, else b = X", lambda ids, layers: int(ids[0] == 1), default=middle
)
OUTPUT_UNLESS_LAST = Rule(
    "b = X if the greatest id is the number of layers, else b = X + 1", _greatest_is_last, default=middle
)
PLAIN = Rule("boundaries as they are", lambda ids, layers: 0)


def always(rule: Rule) -> tuple[Era, ...]:
    """Return a rule that no version changed."""
    return (Era(OLDEST, NEWEST, rule),)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with one rule at a time, whatever the class of model."""

    title: str
    eras: tuple[Era, ...]
    source: str
    notes: tuple[str, ...] = ()


TOOLS: dict[System, Tool] = {
    System.SGLANG_MODEL: Tool(
        "SGLang's model", always(Rule("layer X hands out what it takes in, b = X", lambda ids, layers: 0)),
        "decoder loops of 0.5.8, 0.5.15, 0.5.20 and 0.5.23",
    ),
    System.VLLM: Tool(
        "vLLM", always(INPUT), "vLLM's aux hidden state layers, before and after pull request 36063"
    ),
    System.EAGLE: Tool("EAGLE", always(INPUT), "EAGLE-3's modeling_llama_kv.py"),
    System.HUGGING_FACE: Tool(
        "output_hidden_states", always(Rule("index = b below the number of layers", lambda ids, layers: 0)),
        "transformers",
    ),
    System.SPECFORGE: Tool(
        "SpecForge", always(OUTPUT), "SpecForge 0.1 to 0.2: ids go to SGLang, or to hidden_states[X + 1]",
        ("until 2025-10-20 online training took n//2 for the middle id, one boundary deeper",),
    ),
    System.SPECULATORS: Tool(
        "speculators", (Era((0, 3, 0), (0, 4, 0), OUTPUT_FOUR), Era((0, 5, 0), (0, 5, 0), INPUT)),
        "speculators 0.3.0 and 0.4.0 (after layer X) and 0.5.0 (through vLLM)",
    ),
    System.MODELOPT: Tool(
        "ModelOpt (hf, trtllm)", always(OUTPUT), "ModelOpt's compute_hidden_states_hf.py and _trtllm.py"
    ),
    System.MODELOPT_VLLM: Tool(
        "ModelOpt (vllm)", always(Rule(INPUT_WORDS, lambda ids, layers: 0)),
        "ModelOpt's compute_hidden_states_vllm.py: ids go to vLLM as they are",
    ),
    System.ANGELSLIM: Tool("AngelSlim", always(OUTPUT), "AngelSlim: hidden_states[X + 1]"),
    System.BOUNDARIES: Tool("boundaries", always(PLAIN), "as they were told"),
}  # fmt: skip


def rules_in(eras: tuple[Era, ...], span: Span) -> list[Rule]:
    """Return the rules that may hold, oldest first: a rule changed somewhere between two eras."""
    found = []
    for place, era in enumerate(eras):
        follows = eras[place + 1].first if place + 1 < len(eras) else None
        precedes = eras[place - 1].last if place else None
        if (follows is None or span.low < follows) and (precedes is None or span.high > precedes):
            found.append(era.rule)
    return found
