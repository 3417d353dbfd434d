"""The file of a reference: one gzip'd JSON document, versioned, of at most 5 MB."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.halves import HalfError, narrowed, widened
from specscope_collectors.references.walking import beginning_of

FORMAT, VERSION = "specscope-reference", 1
SUFFIX = ".reference.json.gz"
MAX_FILE_BYTES = 5_000_000
MAX_INFLATED_BYTES = 32_000_000
MAX_NAME = 200
MAGIC = b"\x1f\x8b"
SLOTS: Final = "slots"
BOUNDARIES: Final = "boundaries"
KIND_BYTES = 1_024
"""Of the beginning of a file that `packed` wrote, from which its kind can be told."""


class DocumentError(ValueError):
    """What was given is no reference that can be read here; the text says why."""


class LastState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state behind the last layer."""

    boundary: int | None = None
    norm: str = "unknown"
    """``pre_norm``, ``post_norm`` or ``unknown``."""
    rule: str = ""
    """How that is known, in words."""
    median_square: float | None = None
    """Median of mean((h/w)²); None = no weight was given."""
    weight: bytes = b""
    """Weight of the final norm, float32, by which a slot behind that norm is told; empty = none was given."""


class SampleRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the dump as it stands there: enough to be looked at beside one of serving."""

    request: int
    """Which of the requests that rows are shown of, from 0."""
    slot: int | None = None
    """None = the last state."""
    boundary: int | None = None
    position: int
    token_id: int
    row_class: str
    norm: float | None
    """None = not finite."""
    first_values: tuple[float | None, ...]


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Profiles of a training dump, or of all boundaries of a target, and where they come from."""

    format: Literal["specscope-reference"] = "specscope-reference"
    version: Literal[1] = 1
    kind: Literal["slots", "boundaries"] = "slots"
    """``slots``: what a training dump holds. ``boundaries``: a profile for each boundary of the target and
    class of rows, with ``boundary`` set, ``slot`` None and the phase ``calibration``; it belongs to the
    references of slots of the same model, hidden size and token ids."""
    arrays: Literal["float32", "float16"] = "float32"
    """How the arrays of profiles stand in the file (`halves`); in memory they are always float32."""
    name: str
    made_ms: int
    tool: str
    """Which tool wrote the dump, as far as it can be told."""
    container: str
    compression: str
    model: str = ""
    dtype: str
    hidden_size: int
    boundaries: tuple[int | None, ...]
    """Of each slot; None = nobody says. Of the kind ``boundaries``: those that there are profiles of."""
    boundary_rule: str
    boundary_source: str
    last: LastState | None = None
    last_told_by: str = ""
    files: int
    """Files of the dump."""
    requests: int
    """Requests that rows were read of."""
    tokens: int
    """Tokens of these requests."""
    rows: int
    answer_rows: int | None = None
    """Rows with loss_mask = 1; None = the files hold no mask."""
    budget_rows: int
    seed: int
    fingerprint: str
    """Hash of the names of all files, and of the sizes and token ids of those that were read."""
    sink_limits: tuple[float | None, ...]
    """ln‖h‖ beyond which a row is a sink, of each slot and of the last state; None = not known."""
    token_ids: tuple[int, ...]
    """Ids that directions were kept of: the list for SPECSCOPE_PROBE_TOKEN_IDS."""
    refused: dict[str, int] = {}
    """Files left out: why → how many."""
    notes: tuple[str, ...] = ()
    provenance: dict[str, str] = {}
    """What made the states, e.g. ``engine_version`` or ``torch``; whatever is known of it."""
    profiles: tuple[StateProfile, ...] = ()
    """Of all rows; ``slot`` None = the last state."""
    answer_profiles: tuple[StateProfile, ...] = ()
    """Of rows with loss_mask = 1."""
    samples: tuple[SampleRow, ...] = ()
    """A few rows as they stand in the dump, of the first requests that were read."""


def packed(reference: Reference) -> bytes:
    """Return the file. Raises DocumentError when it is too large; the same reference gives the same bytes."""
    target = io.BytesIO()
    if reference.kind == BOUNDARIES:
        reference = _changed(reference, narrowed, "float16")
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6, mtime=0) as file:
        file.write(msgspec.json.encode(reference))
    if target.tell() > MAX_FILE_BYTES:
        raise DocumentError(
            f"the reference has {target.tell()} bytes, over {MAX_FILE_BYTES}: it has "
            f"{len(reference.boundaries)} {reference.kind} "
            f"of {reference.hidden_size}; give fewer --token-ids"
        )
    return target.getvalue()


def unpacked(content: bytes) -> Reference:
    """Return the reference of a file, which may be hostile. Raises DocumentError."""
    if len(content) > MAX_FILE_BYTES:
        raise DocumentError(f"it has {len(content)} bytes; a reference has at most {MAX_FILE_BYTES}")
    if content.startswith(MAGIC):
        content = _inflated(content)
    if not content.lstrip()[:1] == b"{":
        raise DocumentError("it is no reference: make one with specscope reference build")
    try:
        found = msgspec.json.decode(content, type=Reference)
    except msgspec.ValidationError as error:
        raise DocumentError(f"it is no reference of format {FORMAT}, version {VERSION}: {error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise DocumentError("it is cut off, or no JSON") from None
    return found if found.arrays == "float32" else _changed(found, widened, "float32")


def kind_of(beginning: bytes | None) -> str:
    """Return the kind of a file that `packed` wrote, from its first `KIND_BYTES`; `SLOTS` where none is
    told. Of no bytes SQLite gives None. Raises DocumentError when that is no such file.
    """
    try:
        text = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(beginning or b"", KIND_BYTES)
    except zlib.error:
        raise DocumentError("it is damaged, or no reference") from None
    return BOUNDARIES if b'"kind":"boundaries"' in text else SLOTS


def _changed(
    reference: Reference,
    change: Callable[[StateProfile], StateProfile],
    arrays: Literal["float32", "float16"],
) -> Reference:
    """Return it with every profile changed. Raises DocumentError."""
    try:
        return msgspec.structs.replace(
            reference, arrays=arrays, profiles=tuple(map(change, reference.profiles)),
            answer_profiles=tuple(map(change, reference.answer_profiles)),
        )  # fmt: skip
    except (HalfError, ValueError) as error:
        raise DocumentError(f"its profiles cannot be read: {error}") from None


def _inflated(content: bytes) -> bytes:
    unzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = unzip.decompress(content, MAX_INFLATED_BYTES + 1)
    except zlib.error:
        raise DocumentError("its gzip is damaged") from None
    if len(found) > MAX_INFLATED_BYTES:
        raise DocumentError(f"it unpacks to over {MAX_INFLATED_BYTES} bytes")
    if not unzip.eof:
        raise DocumentError("its gzip is cut off")
    return found


def read_reference(path: Path) -> Reference:
    """Return the reference of a file. Raises DocumentError, whose text begins with the path, and OSError."""
    try:
        content = beginning_of(path, MAX_FILE_BYTES + 1)
    except DumpError as error:
        raise DocumentError(str(error)) from None
    try:
        return unpacked(content)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from None
