"""Rows of the table, from what is known of launches and references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specscope_collectors.layer_ids import Question, Resolved, System, resolve
from specscope_collectors.layer_ids.sglang import GRAPHS_BEFORE_IDS, LAST_READ
from specscope_collectors.layer_ids.versions import span_of, text_of
from specscope_collectors.references.document import Reference
from specscope_server.boundaries.facts import Captured, Ids, LaunchFacts
from specscope_server.boundaries.schemas import BoundaryRow, Role

PROBE = "the running model, as the probe read it"
SYSTEMS = {"sglang": System.SGLANG, "vllm": System.VLLM}
IDS_TEXT = re.compile(r"-?[0-9]{1,4}(,-?[0-9]{1,4}){0,63}", re.ASCII)
NOT_SHOWN = (
    "the engine does not show which ids the draft names, and the draft's config.json is not on the "
    "collector's host"
)


def row_of(
    role: Role, title: str, source: str, found: Resolved, launch_id: int | None, version: str | None
) -> BoundaryRow:
    """Return one row."""
    return BoundaryRow(
        role=role, title=title, source=source, launch_id=launch_id, engine_version=version,
        ids=list(found.ids) if found.ids is not None else None, rule=found.rule, rule_source=found.source,
        boundaries=list(found.boundaries) if found.boundaries is not None else None, reason=found.reason,
        notes=list(found.notes), is_default=found.is_default,
        candidates=[list(each) for each in found.candidates],
    )  # fmt: skip


def trained_row(reference: Reference, version: int, notes: Sequence[str]) -> BoundaryRow:
    """Return what a reference says its slots are."""
    known = any(place is not None for place in reference.boundaries)
    return BoundaryRow(
        role=Role.TRAINED, title="Trained on", launch_id=None, engine_version=None,
        source=f"reference {reference.name[:100]} v{version}"
        + (f", {reference.boundary_source[:100]}" if reference.boundary_source else ""),
        ids=_written_ids(reference), rule=reference.boundary_rule[:300], rule_source=reference.tool[:100],
        boundaries=list(reference.boundaries) if known else None,
        reason="" if known else "the dump does not say: build it with --boundaries or --draft-config",
        notes=list(notes), is_default=False, candidates=[],
    )  # fmt: skip


def unusable_row(why: Sequence[str]) -> BoundaryRow:
    """Return what stands there where no reference that fits can be used."""
    return BoundaryRow(
        role=Role.TRAINED, title="Trained on", launch_id=None, engine_version=None, source="references",
        ids=None, rule="", rule_source="", boundaries=None, reason="; ".join(why), notes=[],
        is_default=False, candidates=[],
    )  # fmt: skip


def _written_ids(reference: Reference) -> list[int] | None:
    """Return the layer ids that the boundaries were told from; None: from none."""
    text = reference.provenance.get("layer_ids", "")
    return [int(each) for each in text.split(",")] if IDS_TEXT.fullmatch(text) else None


def asked_row(facts: LaunchFacts, role: Role = Role.ASKED) -> BoundaryRow | None:
    """Return what the engine makes of the draft's configuration; None: it drafts without such states."""
    if facts.ids is None and not facts.is_eagle3:
        return None
    system = SYSTEMS.get(facts.launch.engine)
    if system is None:
        return None
    title = "Asked for by the draft" if role is Role.ASKED else "Earlier launch"
    if facts.ids is None and not facts.names_none:
        found = Resolved(ids=None, boundaries=None, rule="", source="", reason=NOT_SHOWN)
        return row_of(role, title, "", found, facts.launch.id, facts.version)
    found = resolve(question(facts, system, facts.ids))
    source = facts.ids_source or "the draft names no ids"
    return row_of(role, title, source, found, facts.launch.id, facts.version)


def question(facts: LaunchFacts, system: System, ids: Ids | None, version: str | None = None) -> Question:
    """Return the question that a launch asks."""
    return Question(
        system=system, ids=ids, version=version or facts.version, model_class=facts.model_class,
        layers=facts.layers,
    )  # fmt: skip


def graphs_row(facts: LaunchFacts, asked: BoundaryRow | None) -> BoundaryRow | None:
    """Return what verification sees where graphs are captured before the ids are set; None: the same."""
    span = span_of(facts.version)
    first, last = GRAPHS_BEFORE_IDS
    if facts.ids is None or asked is None or facts.launch.engine != "sglang":
        return None
    if not facts.has_graphs or not (first <= span.low and span.high <= last):
        return None
    found = resolve(question(facts, System.SGLANG, None))
    return row_of(
        Role.GRAPHS, "Graphs of verification",
        f"SGLang {text_of(first)} to {text_of(last)} captures graphs before it sets the draft's ids",
        found, facts.launch.id, facts.version,
    )  # fmt: skip


def captured_row(
    captured: Captured, launch_id: int, version: str | None, role: Role = Role.CAPTURED
) -> BoundaryRow:
    """Return what the running model captures."""
    title = "Captured by the model" if role is Role.CAPTURED else "Earlier launch"
    if captured.layers is None:
        reason = captured.rule or "the model does not say which layers it captures"
        found = Resolved(ids=None, boundaries=None, rule="", source="", reason=reason)
        return row_of(role, title, PROBE, found, launch_id, version)
    found = resolve(Question(system=System.SGLANG_MODEL, ids=captured.layers))
    row = row_of(role, title, PROBE, found, launch_id, version)
    if captured.boundaries is None and captured.rule:
        return row.model_copy(update={"boundaries": None, "reason": captured.rule[:300]})
    return row.model_copy(
        update={"notes": [], "boundaries": list(captured.boundaries or found.boundaries or ())}
    )


def upgrade_row(facts: LaunchFacts, asked: BoundaryRow | None) -> BoundaryRow | None:
    """Return what the same ids mean in the newest version that is known; None: the same."""
    if facts.ids is None or asked is None or asked.boundaries is None or facts.launch.engine != "sglang":
        return None
    if span_of(facts.version).high >= LAST_READ:
        return None
    newest = text_of(LAST_READ)
    found = resolve(question(facts, System.SGLANG, facts.ids, newest))
    if found.boundaries is None or list(found.boundaries) == asked.boundaries:
        return None
    return row_of(Role.UPGRADE, "After an upgrade", f"the same ids in SGLang {newest}", found, None, newest)


def launch_rows(facts: LaunchFacts) -> Iterator[BoundaryRow]:
    """Yield the rows of the launch that is shown."""
    asked = asked_row(facts)
    for row in (asked, graphs_row(facts, asked)):
        if row is not None:
            yield row
    if facts.captured is not None:
        yield captured_row(facts.captured, facts.launch.id, facts.version)
    after = upgrade_row(facts, asked)
    if after is not None:
        yield after


def earlier_row(facts: LaunchFacts) -> BoundaryRow | None:
    """Return the surest row of an earlier launch: what was captured, else what was asked for."""
    asked = asked_row(facts, Role.PREVIOUS)
    if facts.captured is not None and facts.captured.layers is not None:
        row = captured_row(facts.captured, facts.launch.id, facts.version, Role.PREVIOUS)
        return row.model_copy(update={"ids": asked.ids}) if asked is not None and asked.ids else row
    return asked
