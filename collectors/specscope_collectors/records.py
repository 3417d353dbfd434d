"""What all records of the contract have in common (see `specscope_collectors.observations`)."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Labels: TypeAlias = dict[str, str]
"""Label set of one series, e.g. ``{"tp_rank": "0", "dp_rank": "1", "model_name": "…"}``. Untrusted text."""


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of everything that travels."""
