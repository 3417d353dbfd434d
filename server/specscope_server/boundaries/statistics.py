"""Two lists of boundaries in words (pure)."""

from __future__ import annotations

from collections.abc import Sequence

Places = Sequence[int | None]


def as_text(places: Places) -> str:
    """Return boundaries as a list is written; what nobody says is a question mark."""
    return "[" + ", ".join("?" if place is None else str(place) for place in places) + "]"


def is_other(one: Places | None, other: Places | None) -> bool:
    """Say whether two lists surely differ: what is not known differs from nothing."""
    if one is None or other is None:
        return False
    if len(one) != len(other):
        return None not in one and None not in other
    return any(a != b for a, b in zip(one, other, strict=True) if a is not None and b is not None)


def difference(expected: Places, found: Places) -> str:
    """Return how ``found`` differs from ``expected``, in words; "" where it does not."""
    if not is_other(expected, found):
        return ""
    if len(expected) != len(found):
        return f"{_count(len(found))} instead of {len(expected)}"
    steps = [b - a for a, b in zip(expected, found, strict=True) if a is not None and b is not None]
    shifted = _shifted(expected, found)
    if shifted:
        return shifted
    if len(steps) == len(found) and len(set(steps)) == 1:
        every = f"every slot is {_steps(steps[0])}"
        return every if found[0] != 0 else f"{every}, and slot 0 is the embedding"
    if sorted(map(str, expected)) == sorted(map(str, found)):
        return "the same boundaries in another order"
    return "; ".join(
        _of_slot(slot, a, b) for slot, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b
    )


def _count(slots: int) -> str:
    return "nothing" if not slots else "1 slot" if slots == 1 else f"{slots} slots"


def _steps(steps: int) -> str:
    number = "one boundary" if abs(steps) == 1 else f"{abs(steps)} boundaries"
    return f"{number} {'deeper' if steps > 0 else 'shallower'}"


def _shifted(expected: Places, found: Places) -> str:
    """Slots moved along: [3, 31, 59] expected, [0, 3, 31] found."""
    if len(expected) < 2 or len(set(expected)) < len(expected):
        return ""
    if list(found[1:]) == list(expected[:-1]):
        first = "the embedding" if found[0] == 0 else f"boundary {found[0]}, which no slot was trained on"
        return f"slots are shifted by one: slot 0 is {first}, and each other slot holds the one before it"
    if list(found[:-1]) == list(expected[1:]):
        return (
            "slots are shifted by one: each slot holds the one behind it, and the last is "
            f"boundary {found[-1]}, which no slot was trained on"
        )
    return ""


def _of_slot(slot: int, expected: int | None, found: int | None) -> str:
    place = "the embedding" if found == 0 else f"boundary {found}"
    return f"slot {slot} is {place} instead of {expected}"
