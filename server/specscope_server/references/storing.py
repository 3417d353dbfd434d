"""Write references: another content under a name is its next version."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from sqlalchemy import Engine, func, select

from specscope_collectors.references.document import DocumentError, Reference, packed, unpacked
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Reference as Row
from specscope_server.references.checks import trouble_of
from specscope_server.store import dialects
from specscope_server.store.engine import write_transaction


def read_upload(content: bytes, name: str | None, now_ms: int) -> Reference:
    """Return the reference of an uploaded file, which may be hostile. Raises `InvalidInput`."""
    try:
        reference = unpacked(content)
    except DocumentError as error:
        raise InvalidInput(f"the reference is refused: {error}") from None
    if name is not None:
        reference = msgspec.structs.replace(reference, name=name)
    trouble = trouble_of(reference, now_ms)
    if trouble is not None:
        raise InvalidInput(f"the reference is refused: {trouble}; build it again")
    return reference


def store(engine: Engine, reference: Reference, now_ms: int) -> tuple[int, bool]:
    """Store a reference; return its id and whether it is new. Raises `InvalidInput` when it is too large."""
    try:
        body = packed(reference)
    except DocumentError as error:
        raise InvalidInput(f"the reference is refused: {error}") from None
    key = sha256(msgspec.json.encode(reference)).hexdigest()
    with write_transaction(engine) as connection:
        dialects.lock_server(connection, f"reference:{reference.name}")
        query = select(Row.id).where(Row.name == reference.name, Row.key == key)
        known = connection.execute(query).scalar_one_or_none()
        if known is not None:
            return known, False
        newest = select(func.coalesce(func.max(Row.version), 0)).where(Row.name == reference.name)
        row = {
            "name": reference.name, "version": connection.execute(newest).scalar_one() + 1, "key": key,
            "tool": reference.tool, "model": reference.model, "hidden_size": reference.hidden_size,
            "slots": len(reference.boundaries), "requests": reference.requests, "rows": reference.rows,
            "made_ms": reference.made_ms, "created_ms": now_ms, "body": body,
        }  # fmt: skip
        statement = dialects.insert(connection, Row.__table__).values(**row).returning(Row.id)  # type: ignore[arg-type]
        return connection.execute(statement).scalar_one(), True
