"""Make, list and revoke tokens, and look them up."""

from __future__ import annotations

import secrets

import structlog
from sqlalchemy import ColumnElement, Engine, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from specscope_server.kit.clock import Clock, system_clock
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.guard import digest_of
from specscope_server.kit.web.scopes import Grant, Scope
from specscope_server.models import ApiToken
from specscope_server.store.engine import write_transaction

PREFIX = "specscope_"
"""Lets people and scanners of repositories recognise a token."""
TOKEN_BYTES = 32
USE_STEP_MS = 60_000
MAX_NAME_CHARACTERS = 100
log = structlog.get_logger(__name__)


def create_token(engine: Engine, name: str, scope: Scope, now_ms: int) -> str:
    """Make a token and return it: this is the only time that it can be seen. Raises `InvalidInput`."""
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            f"the name {name[:60]!r} is none; use 1 to {MAX_NAME_CHARACTERS} printable characters"
        )
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    row = {"name": name, "digest": digest_of(token), "scope": scope.value, "created_ms": now_ms}
    try:
        with write_transaction(engine) as connection:
            connection.execute(ApiToken.__table__.insert().values(row))  # type: ignore[attr-defined]
    except IntegrityError:
        raise InvalidInput(
            f"there is a token {name!r} already (it may be revoked); choose another name"
        ) from None
    return token


def revoke_token(engine: Engine, name: str, now_ms: int) -> None:
    """End a token for good; it stays in the list. Raises `NotFound`."""
    with write_transaction(engine) as connection:
        found = connection.execute(
            update(ApiToken)
            .where(ApiToken.name == name, ApiToken.revoked_ms.is_(None))
            .values(revoked_ms=now_ms)
        )
    if not found.rowcount:
        raise NotFound(f"there is no valid token {name[:60]!r}; see specscope token list")


def list_tokens(engine: Engine) -> list[ApiToken]:
    """Return all tokens, the revoked ones too, oldest first."""
    with Session(engine) as session:
        return list(session.scalars(select(ApiToken).order_by(ApiToken.id)))


class DatabaseTokens:
    """The tokens of the database, as `kit.web.scopes.TokenStore`."""

    def __init__(self, engine: Engine, clock: Clock = system_clock) -> None:
        self._engine = engine
        self._clock = clock

    def by_digest(self, digest: str) -> Grant | None:
        """Return the token with this digest; None for one that is unknown or revoked."""
        return self._find(ApiToken.digest == digest)

    def by_id(self, token_id: int) -> Grant | None:
        """Return the token with this id; None for one that is unknown or revoked."""
        return self._find(ApiToken.id == token_id)

    def note_use(self, token_id: int) -> None:
        """Remember that it was used; not oftener than once a minute, and not at the price of a request."""
        now_ms = self._clock()
        is_due = ApiToken.last_used_ms.is_(None) | (ApiToken.last_used_ms < now_ms - USE_STEP_MS)
        mine = (ApiToken.id == token_id) & is_due
        try:
            with self._engine.connect() as connection:
                if connection.execute(select(ApiToken.id).where(mine)).first() is None:
                    return
            with write_transaction(self._engine) as connection:
                connection.execute(update(ApiToken).where(mine).values(last_used_ms=now_ms))
        except SQLAlchemyError as error:
            log.warning("use of a token not noted", reason=type(error).__name__)

    def _find(self, where: ColumnElement[bool]) -> Grant | None:
        query = select(ApiToken.id, ApiToken.name, ApiToken.scope, ApiToken.digest)
        with self._engine.connect() as connection:
            row = connection.execute(query.where(where, ApiToken.revoked_ms.is_(None))).one_or_none()
        return None if row is None else Grant(row.id, row.name, Scope(row.scope), row.digest)
