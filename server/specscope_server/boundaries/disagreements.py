"""Where rows that ought to mean the same do not, in words (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specscope_server.acceptance.schemas import Verdict
from specscope_server.boundaries.schemas import BoundaryRow, Disagreement, Role
from specscope_server.boundaries.statistics import as_text, difference, is_other

PAIRS = (
    ("trained_captured", Role.TRAINED, Role.CAPTURED),
    ("trained_asked", Role.TRAINED, Role.ASKED),
    ("asked_captured", Role.ASKED, Role.CAPTURED),
)
WORDS = {
    "trained_captured": "the draft was trained on {expected}, and the running model captures {found}",
    "trained_asked": "the draft was trained on {expected}, and its configuration gives this engine {found}",
    "asked_captured": "the draft asks for {expected} by the rule, and the running model captures {found}",
}


def disagreements_of(rows: Sequence[BoundaryRow], model_class: str | None) -> list[Disagreement]:
    """Return all, faults first."""
    found = [*_pairs(rows), *_graphs(rows), *_lost(rows), *_embedding(rows), *_upgrades(rows, model_class)]
    return sorted(found, key=lambda each: not each.is_fault)


def _place(rows: Sequence[BoundaryRow], role: Role) -> int | None:
    return next((place for place, row in enumerate(rows) if row.role is role), None)


def _pairs(rows: Sequence[BoundaryRow]) -> Iterator[Disagreement]:
    for kind, one, other in PAIRS:
        a, b = _place(rows, one), _place(rows, other)
        if a is None or b is None:
            continue
        expected, found = rows[a].boundaries, rows[b].boundaries
        if expected is None or found is None or not is_other(expected, found):
            continue
        words = WORDS[kind].format(expected=as_text(expected), found=as_text(found))
        message = f"{words}: {difference(expected, found)}."
        yield Disagreement(kind=kind, is_fault=True, message=_capital(message), rows=[a, b])


def _graphs(rows: Sequence[BoundaryRow]) -> Iterator[Disagreement]:
    asked, graphs = _place(rows, Role.ASKED), _place(rows, Role.GRAPHS)
    if asked is None or graphs is None:
        return
    configured, default = rows[asked].boundaries, rows[graphs].boundaries
    if configured is None or (default is not None and not is_other(configured, default)):
        return
    shown = f" ({as_text(default)})" if default is not None else ""
    message = (
        f"This version captures graphs of verification before it sets the draft's layers: verification sees "
        f"the default layers{shown}, prefill {as_text(configured)}. Upgrade to 0.5.11 or later, or start "
        f"with --disable-cuda-graph."
    )
    yield Disagreement(kind="graphs", is_fault=True, message=message, rows=[asked, graphs])


def _lost(rows: Sequence[BoundaryRow]) -> Iterator[Disagreement]:
    for place, row in enumerate(rows):
        if row.role not in (Role.ASKED, Role.WHAT_IF) or row.boundaries is None or row.ids is None:
            continue
        if len(row.boundaries) < len(set(row.ids)):
            message = (
                f"Of ids {as_text(row.ids)} this engine captures {as_text(row.boundaries)} only: "
                f"{len(row.boundaries)} slots, and the draft wants {len(set(row.ids))}."
            )
            yield Disagreement(kind="lost", is_fault=True, message=message, rows=[place])


def _embedding(rows: Sequence[BoundaryRow]) -> Iterator[Disagreement]:
    """The embedding as a slot is possible, and seldom what anybody trained on."""
    trained = _place(rows, Role.TRAINED)
    if trained is not None and rows[trained].boundaries is not None:
        return
    for place, row in enumerate(rows):
        if row.role in (Role.CAPTURED, Role.ASKED) and row.boundaries and row.boundaries[0] == 0:
            message = (
                f"Slot 0 is boundary 0, the embedding ({row.title.lower()}): hardly a draft is trained on "
                "it. A reference of the training dump would tell."
            )
            yield Disagreement(kind="embedding", is_fault=False, message=message, rows=[place])
            return


def _upgrades(rows: Sequence[BoundaryRow], model_class: str | None) -> Iterator[Disagreement]:
    """The same ids, other boundaries: in an earlier launch, or in a newer engine."""
    asked = _place(rows, Role.ASKED)
    if asked is None or rows[asked].boundaries is None:
        return
    now = rows[asked]
    of_class = f" for {model_class}" if model_class else ""
    for kind, role in (("upgrade", Role.PREVIOUS), ("next_upgrade", Role.UPGRADE)):
        place = _place(rows, role)
        if place is None:
            continue
        other = rows[place]
        if other.ids != now.ids or not is_other(other.boundaries, now.boundaries):
            continue
        before, after = (other, now) if kind == "upgrade" else (now, other)
        yield Disagreement(
            kind=kind, is_fault=kind == "upgrade", rows=[place, asked],
            message=_upgrade_words(before, after, of_class, kind == "upgrade"),
        )  # fmt: skip


def _upgrade_words(before: BoundaryRow, after: BoundaryRow, of_class: str, happened: bool) -> str:
    assert before.boundaries is not None
    assert after.boundaries is not None
    named = "no ids" if after.ids is None else as_text(after.ids)
    moved = difference(before.boundaries, after.boundaries)
    end = (
        "this upgrade moved what your draft sees"
        if happened
        else "an upgrade would move what your draft sees"
    )
    return (
        f"{_capital(named)} means {as_text(before.boundaries)} in {_version(before)} and "
        f"{as_text(after.boundaries)} in {_version(after)}{of_class}: {end} ({moved})."
    )


def _version(row: BoundaryRow) -> str:
    return row.engine_version or "a version that is not known"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def verdict_of(rows: Sequence[BoundaryRow], found: Sequence[Disagreement]) -> Verdict:
    """Return the table in one sentence."""
    faults = [each for each in found if each.is_fault]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Verdict(
            state="bad", headline=f"Layer ids disagree{more}", reasons=[each.message for each in found]
        )
    told = [row for row in rows if row.boundaries is not None and row.role is not Role.UPGRADE]
    sides = {row.role for row in told} & {Role.TRAINED, Role.ASKED, Role.CAPTURED}
    notes = [each.message for each in found]
    if len(sides) >= 2:
        shown = as_text(next(row for row in told if row.role in sides).boundaries or [])
        words = "Layer ids agree" if Role.TRAINED in sides else "The model captures what the draft asks for"
        return Verdict(state="ok", headline=f"{words}: {shown}", reasons=notes)
    if sides:
        reason = "Only one side is known: there is nothing to compare it with."
        return Verdict(state="unknown", headline="Layer ids: one side is known", reasons=[reason, *notes])
    if any(row.role is Role.WHAT_IF and row.boundaries is not None for row in rows):
        return Verdict(state="unknown", headline="What if", reasons=notes)
    return Verdict(state="unknown", headline="Layer ids are not known", reasons=notes)
