"""From the files of a calibration launch to a reference of all boundaries.

The engine was started eagerly with ``SPECSCOPE_PROBE_CALIBRATE=1``; its probe wrote profiles of the input of
every decoder layer and of the final norm, a file for each window and rank.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.boundary_notes import notes_of
from specscope_collectors.references.boundary_sums import COMMON_IDS, PHASE
from specscope_collectors.references.document import BOUNDARIES, LastState, Reference
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.merging import merged
from specscope_collectors.references.row_classes import OTHER
from specscope_collectors.references.walking import check_exists, listing
from specscope_collectors.sources.probe.folder import PATTERN
from specscope_collectors.sources.probe.reading import RefusedFileError, StateFile, read_state_file

RULE = "what every decoder layer and the final norm are given: boundary b is the stream after b layers"
HOW = (
    "start the engine with SPECSCOPE_PROBE_CALIBRATE=1, SPECSCOPE_SPOOL and without graphs, "
    "send it varied prompts, and wait for the end of a window"
)


def calibrate(folder: Path, name: str, made_ms: int, model: str = "") -> Reference:
    """Return the reference of the calibration files of a folder. Raises DumpError."""
    check_exists(folder)
    kept, refused = _files(folder)
    if not kept:
        raise DumpError(f"{folder} holds no calibration of the probe, but {listing(folder)}; {HOW}")
    first = kept[0]
    _check_alike(folder, kept)
    boundaries = first.capture.width // first.capture.hidden_size
    places: dict[tuple[int, str], list[StateProfile]] = defaultdict(list)
    for file in kept:
        for profile in file.profiles:
            if profile.phase == PHASE and profile.boundary is not None:
                places[profile.boundary, profile.row_class].append(profile)
    token_ids = _common(places)
    profiles = tuple(merged(parts, token_ids) for _, parts in sorted(places.items()))
    whole = [each for each in profiles if each.boundary == boundaries - 1]
    rows = sum(each.rows for each in whole)
    requests = max(each.requests for each in profiles)
    return Reference(
        kind=BOUNDARIES, name=name, made_ms=made_ms, tool="calibration by the probe", container="profiles",
        compression="gzip", model=model, dtype="", hidden_size=first.capture.hidden_size,
        boundaries=tuple(range(boundaries)), boundary_rule=RULE, boundary_source="the running model",
        last=LastState(boundary=boundaries - 1, norm="pre_norm", rule="what the final norm is given"),
        files=len(kept) + sum(refused.values()), requests=requests, tokens=rows,
        rows=max(rows, *(each.rows for each in profiles)), budget_rows=rows, seed=0,
        fingerprint=_fingerprint(profiles), sink_limits=_limits(kept, boundaries), token_ids=token_ids,
        refused=dict(refused), notes=tuple(notes_of(requests, _windows(kept), profiles)),
        provenance=_provenance(kept), profiles=profiles,
    )  # fmt: skip


def _files(folder: Path) -> tuple[list[StateFile], Counter[str]]:
    kept: list[StateFile] = []
    refused: Counter[str] = Counter()
    for path in sorted(folder.glob(PATTERN)):
        try:
            file = read_state_file(path)
        except (RefusedFileError, OSError) as error:
            refused[str(error)[:200]] += 1
            continue
        if file.capture.is_calibration:
            kept.append(file)
        else:
            refused["it is of serving, no calibration"] += 1
    return kept, refused


def _check_alike(folder: Path, files: Sequence[StateFile]) -> None:
    """Windows of unequal models do not add up. Raises DumpError."""
    kinds = Counter(
        (file.model_class, file.capture.hidden_size, file.capture.width, file.engine_version)
        for file in files
    )
    if len(kinds) > 1:
        words = "; ".join(
            f"{count} of {model} {width // size} × {size}, engine {version}"
            for (model, size, width, version), count in kinds.most_common(4)
        )
        raise DumpError(f"{folder} holds calibrations that do not belong together: {words}; keep one kind")


def _common(places: dict[tuple[int, str], list[StateProfile]]) -> tuple[int, ...]:
    """Return the token ids with most rows, ascending: 64 are enough, and the file is bounded."""
    rows: Counter[int] = Counter()
    for (_, row_class), parts in places.items():
        if row_class == OTHER:
            for part in parts:
                rows.update(dict(zip(part.token_ids, part.token_rows, strict=True)))
    return tuple(sorted(sorted(rows, key=lambda token: (-rows[token], token))[:COMMON_IDS]))


def _limits(files: Sequence[StateFile], boundaries: int) -> tuple[float | None, ...]:
    """Return the limits of sinks of the newest file, as they rest on most rows."""
    newest = max(files, key=lambda file: file.created_ms)
    return newest.sink_limits if len(newest.sink_limits) == boundaries else (None,) * boundaries


def _windows(files: Sequence[StateFile]) -> int:
    return len({file.created_ms // 1000 for file in files})


def _provenance(files: Sequence[StateFile]) -> dict[str, str]:
    first, last = files[0], files[-1]
    return {
        "made_by": "calibration",
        "engine_version": first.engine_version,
        "model_class": first.model_class,
        "probe_version": first.probe_version,
        "files": str(len(files)),
        "ranks": str(len({tuple(sorted(file.rank.items())) for file in files})),
        "launches": str(len({(file.started_ms, file.random_seed) for file in files})),
        "first_ms": str(first.created_ms),
        "last_ms": str(last.created_ms),
    }


def _fingerprint(profiles: Sequence[StateProfile]) -> str:
    digest = hashlib.sha256()
    for part in _parts(profiles):
        digest.update(part)
    return digest.hexdigest()


def _parts(profiles: Sequence[StateProfile]) -> Iterator[bytes]:
    for each in profiles:
        yield np.array([each.rows, each.boundary or 0], "<i8").tobytes()
        yield each.direction_sum
