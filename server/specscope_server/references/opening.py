"""Open what is stored: a version that an older check let through must not break what reads it."""

from __future__ import annotations

from specscope_collectors.references.document import DocumentError, Reference, unpacked
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Reference as Row
from specscope_server.references.checks import trouble_of

REMEDY = "build it again with specscope reference build, and upload the file"


class UnusableError(ValueError):
    """A stored version that cannot be used; the text says why."""


def opened(row: Row) -> Reference:
    """Return the document of a version. Raises UnusableError for what no upload of today would let in."""
    try:
        document = unpacked(row.body)
    except DocumentError as error:
        raise UnusableError(str(error)) from None
    trouble = trouble_of(document, max(row.created_ms, document.made_ms))
    if trouble is not None:
        raise UnusableError(trouble)
    return document


def named(row: Row) -> str:
    """Return a version as errors name it."""
    return f"reference {row.name[:100]!r} version {row.version}"


def asked_for(row: Row) -> Reference:
    """Return the document of a version that the user asks for. Raises `InvalidInput`, with the remedy."""
    try:
        return opened(row)
    except UnusableError as error:
        raise InvalidInput(f"{named(row)} cannot be used: {error}; {REMEDY}") from None
