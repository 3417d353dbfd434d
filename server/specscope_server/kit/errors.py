"""Errors that reach the user as RFC 9457 problem documents; one shape for the whole API.

SpecscopeError              500  (base; never raised itself)
├── InvalidInput            422  the caller sent something that cannot be meant
├── NotFound                404  the named thing does not exist
├── Unauthorized            401  a token is needed and was missing or wrong
├── Forbidden               403
├── TooSlow                 408  the body did not arrive in time
├── Conflict                409  somebody else changed it meanwhile, or the name is taken
├── TooLarge                413
├── UnsupportedMedia        415  the body is of a kind that is not read here
└── Unavailable             503  the store is busy or not migrated; try again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class SpecscopeError(Exception):
    """Base of expected errors: ``detail`` names the input, the reason and the remedy."""

    status = 500
    title = "Internal error"

    def __init__(self, detail: str, items: Sequence[Mapping[str, str]] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.items = items
        """Each wrong input among several: ``location``, ``reason``, ``input``."""


class InvalidInput(SpecscopeError):
    """The caller sent something that cannot be meant."""

    status = 422
    title = "Invalid input"


class NotFound(SpecscopeError):
    """The named thing does not exist."""

    status = 404
    title = "Not found"


class Unauthorized(SpecscopeError):
    """A token is needed and was missing or wrong."""

    status = 401
    title = "Unauthorized"


class Forbidden(SpecscopeError):
    """The caller may not do this."""

    status = 403
    title = "Forbidden"


class TooSlow(SpecscopeError):
    """The input did not arrive in time."""

    status = 408
    title = "Request timeout"


class Conflict(SpecscopeError):
    """Somebody else changed it meanwhile, or the name is taken."""

    status = 409
    title = "Conflict"


class TooLarge(SpecscopeError):
    """The input is larger than the limit."""

    status = 413
    title = "Too large"


class UnsupportedMedia(SpecscopeError):
    """The body is of a kind that is not read here."""

    status = 415
    title = "Unsupported media type"


class Unavailable(SpecscopeError):
    """The store is busy or not migrated; trying again later may help."""

    status = 503
    title = "Unavailable"
