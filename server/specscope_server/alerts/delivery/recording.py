"""Write down what came of an attempt: log, delivery, the channel's breaker, and who else must know."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, Row, select, update

from specscope_server.alerts.auditing import note
from specscope_server.alerts.delivery import failing
from specscope_server.alerts.delivery.attempting import Attempted
from specscope_server.alerts.delivery.breaker import Breaker, breaker_of
from specscope_server.alerts.delivery.claiming import Claimed, locked, set_breaker
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import CLAIMED, EXPIRED, FAILED, PENDING, SENT
from specscope_server.models import Channel, Delivery, DeliveryAttempt
from specscope_server.store.engine import write_transaction

MAX_REASON = 500
ACTOR = "specscope"
"""Who turns a channel off whose receiver wants nothing more."""
ENDS = {"delivered": SENT, "gone": FAILED, "permanent": FAILED}


def record(
    engine: Engine, claimed: Claimed, attempted: Attempted, now_ms: int, options: DeliveryOptions,
    *, is_last: bool = False,
) -> str:  # fmt: skip
    """Return the status of the delivery. ``is_last``: it is not tried again, whatever came of it."""
    with write_transaction(engine) as connection:
        row = locked(connection, claimed.channel)
        _log(connection, claimed, attempted, now_ms)
        values = _next(connection, claimed, attempted, now_ms, options, is_last)
        mine = (
            (Delivery.id == claimed.id)
            & (Delivery.status == CLAIMED)
            & (Delivery.claimed_by == claimed.worker)
            & (Delivery.attempts == claimed.attempts)
        )
        connection.execute(update(Delivery).where(mine).values(**values))
        if row is not None:
            _channel(connection, claimed, attempted, str(values["status"]), row, now_ms, options)
        return str(values["status"])


def _log(connection: Connection, claimed: Claimed, attempted: Attempted, now_ms: int) -> None:
    connection.execute(
        DeliveryAttempt.__table__.insert().values(  # type: ignore[attr-defined]
            delivery_id=claimed.id,
            at_ms=now_ms,
            outcome=attempted.outcome,
            status_code=attempted.status_code,
            latency_ms=attempted.latency_ms,
            reason=attempted.reason[:MAX_REASON],
        )
    )


def _next(
    connection: Connection, claimed: Claimed, attempted: Attempted, now_ms: int, options: DeliveryOptions,
    is_last: bool,
) -> dict[str, Any]:  # fmt: skip
    free: dict[str, Any] = {"claimed_by": None, "claimed_until_ms": None}
    free |= {"reason": attempted.reason[:MAX_REASON]} if attempted.reason else {}
    free |= {"body_sha256": attempted.body_sha256} if attempted.body_sha256 else {}
    if attempted.outcome in ENDS or is_last:
        return {**free, "status": ENDS.get(attempted.outcome, FAILED), "finished_ms": now_ms}
    next_ms = now_ms + options.backoff.wait_ms(claimed.attempts, attempted.after_seconds, options.chance)
    if next_ms >= _expires(connection, claimed):
        return {**free, "status": EXPIRED, "finished_ms": now_ms}
    return {**free, "status": PENDING, "next_attempt_ms": next_ms}


def _expires(connection: Connection, claimed: Claimed) -> int:
    found = connection.scalar(select(Delivery.expires_ms).where(Delivery.id == claimed.id))
    return int(found) if found is not None else 0


def _channel(
    connection: Connection, claimed: Claimed, attempted: Attempted, status: str, row: Row[Any], now_ms: int,
    options: DeliveryOptions,
) -> None:  # fmt: skip
    """Move the breaker, and tell the other channels when an episode of failures begins or ends.

    A test that fails moves nothing: whoever pressed the button is told.
    """
    if attempted.outcome == "gone" and row.enabled:
        _turn_off(connection, claimed.channel, attempted.reason[:MAX_REASON], now_ms)
    if claimed.notification.cause == "test" and attempted.outcome != "delivered":
        return
    before = breaker_of(row.breaker)
    after = _moved(before, attempted, now_ms)
    has_given_up = status in (FAILED, EXPIRED)
    has_opened = after.opened_ms is not None and before.opened_ms is None
    if has_given_up or has_opened:
        after = failing.tell(connection, claimed.channel, after, attempted.reason, now_ms, options)
    elif attempted.outcome == "delivered":
        failing.tell_over(connection, claimed.channel, before, failing.GOT_THROUGH, now_ms)
    set_breaker(connection, claimed.channel, after)


def _moved(before: Breaker, attempted: Attempted, now_ms: int) -> Breaker:
    """Return the breaker. That a message is refused for good says nothing of others, unless all would be."""
    match attempted.outcome:
        case "delivered":
            return before.succeeded()
        case "retry" | "unknown":
            return before.failed(now_ms)
        case "permanent":
            return before.failed(now_ms) if attempted.is_of_channel else before.refused()
        case "gone":
            return before


def _turn_off(connection: Connection, channel: str, reason: str, now_ms: int) -> None:
    connection.execute(
        update(Channel).where(Channel.name == channel).values(enabled=False, disabled_reason=reason)
    )
    after = {"enabled": False, "disabled_reason": reason}
    note(connection, now_ms, ACTOR, "channel.disable", channel, {"enabled": True}, after)
