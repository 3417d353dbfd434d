"""How a look for servers went, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specscope_collectors.discoveries import Answer, DiscoveryError
from specscope_collectors.health import MAX_DETAIL
from specscope_collectors.observations import HealthState

SHOWN = 3
"""Refused entries that are told in words."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """State of a discovery, what is wrong and what to do about it."""

    state: HealthState
    detail: str
    remedy: str


def servers(count: int) -> str:
    """Return e.g. ``1 server``."""
    return f"{count} server{'s' * (count != 1)}"


def of_error(error: DiscoveryError, found: int) -> Verdict:
    """No list could be read; ``found`` servers of the last one are watched."""
    kept = f"the last good list is kept: {servers(found)}" if found else "no servers known"
    return Verdict(error.state, f"{error}; {kept}"[:MAX_DETAIL], error.remedy[:MAX_DETAIL])


def of_answer(answer: Answer, refused: Sequence[str], found: int, absent: int) -> Verdict:
    """A list was read; ``found`` servers are watched, ``absent`` of them though it does not name them."""
    excess = len(refused) - SHOWN
    words = [
        "; ".join(refused[:SHOWN]),
        f"and {excess} more" if excess > 0 else "",
        answer.keeps,
        f"{absent} no longer listed, still watched for a while" if absent else "",
        "" if found else "the list is empty",
    ]
    is_whole = found and not refused and not answer.keeps
    remedy = "list servers there" if not found else "correct the list there" if not is_whole else ""
    state = HealthState.OK if is_whole else HealthState.PARTIAL
    return Verdict(state, "; ".join(filter(None, words))[:MAX_DETAIL], remedy)
