"""Which rank a trace or an event is of: from names of files and from the labels of merged traces."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from specscope_collectors.observations import Labels

_PART = re.compile(r"(?:^|-)(TP|DP|PP|EP)-(\d{1,6})(?=[-.]|$)")
_STAGE = re.compile(r"-(extend|prefill|decode)(?=\.|$)", re.IGNORECASE)
_START = re.compile(r"(?:^|-)(\d{10}(?:\.\d+)?)(?=-)")
_MERGED = re.compile(r"^\[((?:TP|DP|PP|EP)\d+(?:-(?:TP|DP|PP|EP)\d+)*|Unknown)\] ")
_NAMES = {"TP": "tp_rank", "DP": "dp_rank", "PP": "pp_rank", "EP": "moe_ep_rank"}
ENDINGS = (".json", ".json.gz")


def rank_of_file(name: str) -> Labels:
    """Return the rank labels that a name such as ``1795986432.46-TP-3-DP-1-DECODE.trace.json.gz`` holds."""
    return {_NAMES[kind]: str(int(number)) for kind, number in _PART.findall(PurePath(name).name)}


def stage_of_file(name: str) -> str:
    """Return ``extend`` or ``decode`` where a capture by stage was written to a file of its own; else ""."""
    found = _STAGE.search(PurePath(name).name)
    return {"prefill": "extend"}.get(word := found.group(1).lower(), word) if found else ""


def start_of_file(name: str) -> int | None:
    """Return when the capture was asked for, epoch milliseconds, if the name begins with it."""
    found = _START.search(PurePath(name).name)
    return round(float(found.group(1)) * 1000) if found else None


def merged_label(pid: object) -> str:
    """Return ``TP00-DP01`` of the process id ``[TP00-DP01] 6706`` in a merged trace; else ""."""
    found = _MERGED.match(pid) if isinstance(pid, str) else None
    return found.group(1) if found else ""


def rank_of_label(label: str) -> Labels:
    """Return the rank labels of a merged trace's label."""
    parts = re.findall(r"(TP|DP|PP|EP)(\d{1,6})", label)
    return {_NAMES[kind]: str(int(number)) for kind, number in parts}


def rank_of_header(header: dict[str, Any]) -> Labels:
    """Return the global rank that PyTorch wrote; without groups it is the best that is known."""
    info = header.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    is_alone = isinstance(info, dict) and info.get("world_size") == 1
    known = isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 and not is_alone
    return {"rank": str(rank)} if known else {}
