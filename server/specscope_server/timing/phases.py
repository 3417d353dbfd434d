"""The phases that time is spent in, and what each source calls them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias


class Phase(StrEnum):
    """What the engine does, in the order in which a cycle does it. The names are those of the API."""

    DRAFT = "draft"
    VERIFY_PREPARE = "verify_prepare"
    VERIFY = "verify"
    SAMPLING = "sampling"
    DRAFT_EXTEND = "draft_extend"
    ROUND = "round"
    """Draft, verify and draft-extend, where the engine's timer does not tell them apart."""
    DECODE = "decode"
    """The target's plain step, without speculation."""
    HOST = "host"
    """Between two cycles, or scheduler work while the device has none."""
    UNATTRIBUTED = "unattributed"
    PREFILL = "prefill"
    PREFILL_OR_EXTEND = "prefill_or_extend"
    """Prefill and draft-extend, where the engine's timer does not tell them apart (eager drafts)."""
    WARM_UP = "warm_up"
    """First cycles, which hold compilation."""
    IDLE = "idle"


TITLES: Mapping[Phase, str] = {
    Phase.DRAFT: "draft",
    Phase.VERIFY_PREPARE: "prepare",
    Phase.VERIFY: "verify",
    Phase.SAMPLING: "sampling",
    Phase.DRAFT_EXTEND: "draft-extend",
    Phase.ROUND: "whole round",
    Phase.DECODE: "plain decode",
    Phase.HOST: "host",
    Phase.UNATTRIBUTED: "unattributed",
    Phase.PREFILL: "prefill",
    Phase.PREFILL_OR_EXTEND: "prefill/extend",
    Phase.WARM_UP: "warm-up",
    Phase.IDLE: "idle",
}
"""Phase → what people read."""

MEANINGS: Mapping[Phase, str] = {
    Phase.DRAFT: "the draft model's steps",
    Phase.VERIFY_PREPARE: "preparing verify: from entering it to the target's forward",
    Phase.VERIFY: "the target's forward over D tokens per request",
    Phase.SAMPLING: "from the end of that forward to the end of verification: choosing tokens, grammar, KV",
    Phase.DRAFT_EXTEND: "the draft model over the accepted tokens",
    Phase.ROUND: "draft, verify and draft-extend under one timer: this engine version does not split them",
    Phase.DECODE: "the target's step of one token per request, without speculation",
    Phase.HOST: "between two cycles, or scheduler work while the device runs nothing",
    Phase.UNATTRIBUTED: "no source says what it was",
    Phase.PREFILL: "prompts, of the target and of the draft",
    Phase.PREFILL_OR_EXTEND: "prefill and, with eager drafts, draft-extend: one category of its timer",
    Phase.WARM_UP: "the first cycles of each shape, with compilation; kept out of every mean",
    Phase.IDLE: "nothing to do",
}

PROBE_CYCLE: Mapping[str, Phase] = {
    "draft": Phase.DRAFT,
    "verify_prepare": Phase.VERIFY_PREPARE,
    "verify": Phase.VERIFY,
    "sampling": Phase.SAMPLING,
    "draft_extend": Phase.DRAFT_EXTEND,
    "other": Phase.UNATTRIBUTED,
}
"""Phases of the probe that add up to a speculative cycle."""
PROBE_PLAIN: Mapping[str, Phase] = {"decode": Phase.DECODE, "decode_other": Phase.UNATTRIBUTED}
"""Phases of the probe that add up to a plain decode step."""
PROBE_PREFILL: Mapping[str, Phase] = {
    "prefill": Phase.PREFILL,
    "prefill_draft_extend": Phase.PREFILL,
    "prefill_other": Phase.UNATTRIBUTED,
}
GAP = "gap"

Names: TypeAlias = dict[str, Phase]
