"""What was seen in a file, and what a reference says, as lines of text. Names in files are others' text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specscope_collectors.references.document import BOUNDARIES, Reference
from specscope_collectors.references.inspecting import FileSeen, StateSeen
from specscope_collectors.references.row_classes import OTHER
from specscope_collectors.references.texts import plain

SHOWN_TOKENS = 8


def seen_lines(seen: FileSeen, tokens: int = SHOWN_TOKENS) -> Iterator[str]:
    """Yield what `inspect` prints."""
    yield from map(plain, _seen_lines(seen, tokens))


def _seen_lines(seen: FileSeen, tokens: int) -> Iterator[str]:
    packed = "" if seen.compression == "none" else f", {seen.compression}"
    tool = f"; as {seen.tool} writes it" if seen.tool else ""
    yield f"file      {seen.path}: {seen.container}{packed}, {seen.bytes:,} bytes{tool}"
    for tensor in seen.tensors:
        view = "" if tensor.is_contiguous else f"  (a view of {tensor.storage_bytes:,} bytes)"
        yield f"tensor    {tensor.key:<24} {list(tensor.shape)!s:<18} {tensor.dtype}{view}"
    for key, value in seen.values.items():
        yield f"value     {key[:40]:<24} {str(value)[:80]}"
    if seen.trouble:
        yield f"trouble   {seen.trouble}"
        return
    mask = (
        "no loss mask" if seen.answer_tokens is None else f"{seen.answer_tokens:,} of them with loss_mask = 1"
    )
    yield f"tokens    {seen.tokens:,}, {mask}; ids {_row(seen.token_ids[:tokens], seen.tokens or 0)}"
    yield f"states    {len(seen.states)} of {seen.hidden_size} values for each token; norms are in float32"
    for state in seen.states:
        yield from _state_lines(state, tokens)
    if seen.last_norm:
        yield (
            f"last      {seen.last_norm.replace('_', '-')}: median of mean((h/w)²) "
            f"{_number(seen.last_norm_median)} "
            f"({seen.last_norm_rule})"
        )


def _state_lines(state: StateSeen, tokens: int) -> Iterator[str]:
    yield (
        f"{state.place:<9} {state.key}, {state.dtype}: norm at position 0 "
        f"{_number(state.position_0)}; from "
        f"position 4 on median {_number(state.median)}, {_number(state.least)} to {_number(state.most)}"
    )
    if state.zero_rows or state.nonfinite_rows:
        yield f"          {state.zero_rows} rows of zeros, {state.nonfinite_rows} rows with NaN or infinity"
    yield f"          norms by token  {_row(state.norms[:tokens], len(state.norms))}"
    values = " ".join(map(_number, state.first_values))
    yield f"          first values at position {state.first_values_position}  {values}"


def _row(values: Sequence[float | int | None], total: int) -> str:
    more = f" … ({total - len(values):,} more)" if total > len(values) else ""
    return " ".join(map(_number, values)) + more


def _number(value: float | int | None) -> str:
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.5g}"


def reference_lines(reference: Reference) -> Iterator[str]:
    """Yield what a reference says, in words."""
    yield from map(plain, _reference_lines(reference))


def _reference_lines(reference: Reference) -> Iterator[str]:
    answers = (
        "no loss mask" if reference.answer_rows is None else f"{reference.answer_rows:,} with loss_mask = 1"
    )
    if reference.kind == BOUNDARIES:
        yield from _boundary_lines(reference)
        return
    yield f"reference {reference.name}: as {reference.tool} writes it, {reference.dtype}"
    yield (
        f"rows      {reference.rows:,} ({answers}) of {reference.requests:,} requests, "
        f"{reference.tokens:,} tokens; "
        f"the dump has {reference.files:,} files"
    )
    names = (
        ", ".join("?" if boundary is None else str(boundary) for boundary in reference.boundaries) or "none"
    )
    source = f" ({reference.boundary_source})" if reference.boundary_source else ""
    yield (
        f"slots     {len(reference.boundaries)} of {reference.hidden_size}; boundaries {names}: "
        f"{reference.boundary_rule}{source}"
    )
    if reference.last is not None:
        yield f"last      {reference.last.norm.replace('_', '-')} ({reference.last.rule})"
    for profile in reference.profiles:
        place = "last" if profile.slot is None else f"slot {profile.slot}"
        counted = sum(profile.ln_norms.bins.values())
        mean = f", mean ln‖h‖ {profile.ln_norms.sum / counted:.3f}" if counted else ""
        rows = f"{profile.rows:,} rows of {profile.requests:,} requests"
        yield f"          {place:<6} {profile.row_class:<5} {rows}{mean}"
    yield from _remark_lines(reference)


def _boundary_lines(reference: Reference) -> Iterator[str]:
    """Yield what a reference of all boundaries says."""
    made = ", ".join(f"{key} {value}" for key, value in reference.provenance.items())
    yield f"reference {reference.name}: all boundaries, {reference.tool} ({made})"
    yield (
        f"rows      {reference.rows:,} of {reference.requests:,} requests; "
        f"{len(reference.boundaries)} boundaries of {reference.hidden_size}; "
        f"directions of {len(reference.token_ids)} token ids"
    )
    for profile in reference.profiles:
        counted = sum(profile.ln_norms.bins.values())
        if profile.row_class == OTHER and counted:
            mean = profile.ln_norms.sum / counted
            yield f"          boundary {profile.boundary:<3} {profile.rows:,} rows, mean ln‖h‖ {mean:.3f}"
    yield from _remark_lines(reference)


def _remark_lines(reference: Reference) -> Iterator[str]:
    refused = sum(reference.refused.values())
    if refused:
        yield f"left out  {refused:,} files"
        yield from (f"          {count:,} × {reason}" for reason, count in reference.refused.items())
    yield from (f"note      {note}" for note in reference.notes)
