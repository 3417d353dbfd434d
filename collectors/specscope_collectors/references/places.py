"""Where in the model each state of a dump was taken, as a boundary, with the rule and its source.

Boundary b is the residual stream after b decoder layers; `specscope_collectors.layer_ids` has the rules by
which tools name layers. States are recorded in the order of depth, not of the list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specscope_collectors.layer_ids import Question, resolve
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.manifests import Manifest, wrong_boundaries
from specscope_collectors.references.writers import Writer


@dataclass(frozen=True, slots=True)
class Places:
    """Boundaries of the slots and of the last state; None = nobody says."""

    slots: tuple[int | None, ...]
    last: int | None
    rule: str
    source: str
    ids: tuple[int, ...] = ()
    """Layer ids as they are written, if boundaries were told from such."""


def places_of(
    slots: int, has_last: bool, writer: Writer, told: tuple[int, ...], manifest: Manifest | None,
    draft: Manifest | None,
) -> Places:  # fmt: skip
    """Return the places, from the surest source: what the user says, the manifest, the draft.

    Raises DumpError when the user names another number of boundaries than there are states, or ones that
    cannot be.
    """
    if told:
        if len(told) not in (slots, slots + has_last):
            last = " and the last state" if has_last else ""
            raise DumpError(f"--boundaries names {len(told)}, and the dump has {slots} slots{last}")
        wrong = wrong_boundaries(told, manifest.layers if manifest else None)
        if wrong:
            raise DumpError(f"--boundaries {wrong}")
        return _made(told, slots, has_last, None, "boundaries as they were told", "--boundaries")
    if manifest is not None and len(manifest.boundaries) in (slots, slots + has_last):
        return _made(
            manifest.boundaries,
            slots,
            has_last,
            manifest.layers,
            "boundaries as they are written",
            manifest.source,
        )
    for named in (manifest, draft):
        if named is not None and named.layer_ids:
            found = _of_ids(named, slots, has_last, writer)
            if found is not None:
                return found
    return Places((None,) * slots, None, "unknown: neither a manifest nor a draft names layers", "")


def _of_ids(named: Manifest, slots: int, has_last: bool, writer: Writer) -> Places | None:
    """Turn layer ids into boundaries; duplicates vanish, and order is that of depth."""
    count = len(set(named.layer_ids))
    if writer.system is None or count not in (slots, slots + has_last):
        return None
    found = resolve(
        Question(system=writer.system, ids=named.layer_ids, version=writer.version, layers=named.layers)
    )
    if found.boundaries is None:
        return Places((None,) * slots, None, f"unknown: {found.reason} ({named.source})", "")
    rule = f"{found.rule.partition(': ')[2]}, as {writer.name} records it, by depth"
    made = _made(found.boundaries, slots, has_last, named.layers, rule, named.source)
    return replace(made, ids=named.layer_ids)


def _made(
    numbers: tuple[int, ...], slots: int, has_last: bool, layers: int | None, rule: str, source: str
) -> Places:
    last = numbers[slots] if len(numbers) > slots else layers if has_last else None
    return Places(numbers[:slots], last, rule, source)
