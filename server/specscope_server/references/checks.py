"""What cannot be in a reference: its parts must fit each other, whoever made the file."""

from __future__ import annotations

from collections import Counter

import numpy as np

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.document import BOUNDARIES, MAX_NAME, Reference
from specscope_server.store.limits import BEGINNING_MS, number_reason, text_reason, time_reason
from specscope_server.store.state_writer import MAX_TOKEN_IDS, profile_reason

MAX_SLOTS, MAX_PROFILES, MAX_TEXTS = 512, 4_096, 1_000
MAX_SAMPLES, MAX_VALUES = 1_000, 16
PHASES = frozenset({"prefill", "calibration"})


def trouble_of(reference: Reference, now_ms: int) -> str | None:
    """Return why a reference is refused, in words; None: it is in order."""
    if not reference.name.strip() or len(reference.name) > MAX_NAME or not reference.name.isprintable():
        return f"its name is not of 1 to {MAX_NAME} printable characters"
    return (
        _of_texts(reference)
        or _of_numbers(reference, now_ms)
        or _of_profiles(reference, now_ms)
        or _of_samples(reference)
    )


def _of_samples(reference: Reference) -> str | None:
    samples = reference.samples
    if len(samples) > MAX_SAMPLES or any(len(each.first_values) > MAX_VALUES for each in samples):
        return f"it shows over {MAX_SAMPLES} rows, or over {MAX_VALUES} values of one"
    numbers = (
        number for each in samples
        for number in (each.request, each.slot, each.boundary, each.position, each.token_id)
    )  # fmt: skip
    reason = number_reason(*numbers) or text_reason(*(each.row_class for each in samples))
    return f"one of the rows that it shows cannot be ({reason})" if reason else None


def _of_texts(reference: Reference) -> str | None:
    last = reference.last
    texts = [
        reference.tool, reference.container, reference.compression, reference.model, reference.dtype,
        reference.boundary_rule, reference.boundary_source, reference.last_told_by, reference.fingerprint,
        *reference.notes, *reference.refused, *reference.provenance, *reference.provenance.values(),
        *((last.norm, last.rule) if last else ()),
    ]  # fmt: skip
    if len(texts) > MAX_TEXTS:
        return f"it has over {MAX_TEXTS} notes"
    reason = text_reason(*texts)
    return f"one of its texts cannot be stored ({reason})" if reason else None


def _of_numbers(reference: Reference, now_ms: int) -> str | None:
    counts = (
        reference.files, reference.requests, reference.tokens, reference.rows, reference.answer_rows,
        reference.budget_rows, reference.seed, *reference.refused.values(),
    )  # fmt: skip
    boundaries = [boundary for boundary in reference.boundaries if boundary is not None]
    last = reference.last.boundary if reference.last is not None else None
    reason = number_reason(*counts, *boundaries, last) or time_reason(reference.made_ms, BEGINNING_MS, now_ms)
    if reason:
        return f"one of its numbers cannot be ({reason})"
    if len(reference.boundaries) > MAX_SLOTS or len(reference.token_ids) > MAX_TOKEN_IDS:
        return f"it has over {MAX_SLOTS} slots or {MAX_TOKEN_IDS} token ids"
    weight = reference.last.weight if reference.last is not None else b""
    if weight and len(weight) != 4 * reference.hidden_size:
        return "its weight of the final norm is of another hidden size"
    if not np.isfinite(np.frombuffer(weight, "<f4")).all():
        return "its weight of the final norm has values that are not finite"
    if not 0 < reference.requests <= reference.rows or (reference.answer_rows or 0) > reference.rows:
        return "its requests and rows do not fit each other"
    return None


def _of_profiles(reference: Reference, now_ms: int) -> str | None:
    profiles = (*reference.profiles, *reference.answer_profiles)
    if not reference.profiles or len(profiles) > MAX_PROFILES:
        return f"it has {len(profiles)} profiles; it must have some, and at most {MAX_PROFILES}"
    is_whole = reference.kind == BOUNDARIES
    if is_whole and not any(each.row_class == "other" for each in reference.profiles):
        return "it has no profile of ordinary rows (class 'other'), which serving is compared with"
    for group in (reference.profiles, reference.answer_profiles):
        places = Counter(
            (each.boundary if is_whole else each.slot, each.row_class, each.phase) for each in group
        )
        if any(count > 1 for count in places.values()):
            return "two of its profiles are of one place"
    return next((words for each in profiles if (words := _of_profile(reference, each, now_ms))), None)


def _of_profile(reference: Reference, profile: StateProfile, now_ms: int) -> str | None:
    where = f"its profile of slot {profile.slot}, class {profile.row_class[:20]!r},"
    reason = profile_reason(profile, BEGINNING_MS, now_ms)
    if reason:
        return f"{where} cannot be ({reason})"
    if profile.hidden_size != reference.hidden_size or profile.rows > reference.rows:
        return f"{where} is of another hidden size, or has more rows than there are"
    if profile.phase not in PHASES:
        return f"{where} is of the phase {profile.phase[:20]!r}, which no training has"
    if reference.kind == BOUNDARIES and (profile.slot is not None or profile.boundary is None):
        return f"{where} is of a slot, in a reference of all boundaries"
    if profile.slot is not None and profile.slot >= len(reference.boundaries):
        return f"{where} is of a slot that is not there"
    arrays = (
        profile.token_directions, profile.direction_sum, profile.direction_sum_of_squares,
        profile.sum_of_squares,
    )  # fmt: skip
    if any(not np.isfinite(np.frombuffer(array, "<f4")).all() for array in arrays):
        return f"{where} has sums that are not finite"
    return None
