"""Which phase of a cycle a range of the profiler stands for, over SGLang's versions and the probe's own."""

from __future__ import annotations

import re
from enum import IntEnum


class Mark(IntEnum):
    """What a named range says."""

    DRAFT = 1
    DRAFT_EXTEND = 2
    STEP_VERIFY = 3
    STEP_EXTEND = 4
    STEP_DECODE = 5
    STEP_DRAFT = 6
    OWN_VERIFY = 7
    """The probe's: verify forward and sampling together."""
    OWN_SAMPLING = 8


OWN = "specscope."
"""What names of the probe's ranges begin with."""
_NAMED = {
    "draft": Mark.DRAFT,
    "draft_extend": Mark.DRAFT_EXTEND,
    "specscope.draft": Mark.DRAFT,
    "specscope.draft_extend": Mark.DRAFT_EXTEND,
    "specscope.target": Mark.STEP_VERIFY,
    "specscope.verify": Mark.OWN_VERIFY,
    "specscope.sampling": Mark.OWN_SAMPLING,
    "specscope.prefill": Mark.STEP_EXTEND,
}
_STEPS = {
    "VERIFY": Mark.STEP_VERIFY,
    "TARGET_VERIFY": Mark.STEP_VERIFY,
    "EXTEND": Mark.STEP_EXTEND,
    "MIXED": Mark.STEP_EXTEND,
    "SPLIT_PREFILL": Mark.STEP_EXTEND,
    "PREFILL": Mark.STEP_EXTEND,
    "DECODE": Mark.STEP_DECODE,
    "DRAFT": Mark.STEP_DRAFT,
    "DRAFT_EXTEND": Mark.DRAFT_EXTEND,
    "DRAFT_EXTEND_V2": Mark.DRAFT_EXTEND,
}
_STEP = re.compile(r"^step\[([A-Z_0-9]+)")
_SIZE = re.compile(r"\bbs=(\d{1,6})\b")


def mark_of(name: str) -> Mark | None:
    """Return what a range says; None for one that says nothing of phases."""
    named = _NAMED.get(name)
    if named is not None or not name.startswith("step["):
        return named
    found = _STEP.match(name)
    return _STEPS.get(found.group(1)) if found else None


def batch_size_of(name: str) -> int:
    """Return bs of ``step[VERIFY bs=4]``; 0 = not said."""
    found = _SIZE.search(name)
    return int(found.group(1)) if found else 0
