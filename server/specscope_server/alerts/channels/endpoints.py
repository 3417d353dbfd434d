"""Channels and deliveries: list, make, change, remove, test, log, replay. Assembled by `alerts.endpoints`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from specscope_server.alerts.channels import examples, listing, stored
from specscope_server.alerts.channels.schemas import (
    ChannelBody,
    ChannelItem,
    ChannelList,
    DeliveryDetail,
    DeliveryItem,
    DeliveryList,
    KindList,
    NewChannel,
    ReplayReceipt,
    TestResult,
)
from specscope_server.alerts.channels.stored import Author, Wanted
from specscope_server.alerts.delivery.asking import replay, try_channel
from specscope_server.alerts.delivery.options import DeliveryOptions, delivery_options
from specscope_server.kit.web.actor import actor_of
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID, Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice
from specscope_server.kit.web.state import Db, State
from specscope_server.store.engine import write_transaction

router = APIRouter()

Name = Annotated[str, Path(max_length=60, description="Name of a channel")]
Number = Annotated[int, Path(ge=0, le=MAX_ID, description="Id of a delivery, as listed")]
OfChannel = Annotated[str | None, Query(alias="channel", max_length=60, description="Only this channel's")]
OfStatus = Annotated[str | None, Query(alias="status", description="Only with this status")]
WORKER = "api"


def _options(request: Request) -> DeliveryOptions:
    return delivery_options(request.app)


def _author(request: Request, state: State) -> Author:
    return Author(actor_of(request), state.clock())


@router.get(
    "/alerts/channel-kinds", summary="List kinds of channels", response_model=KindList,
    responses=answers(examples.KINDS),
)  # fmt: skip
def channel_kinds() -> KindList:
    """Each kind with its settings."""
    return listing.list_kinds()


@router.get(
    "/alerts/channels", summary="List channels", response_model=ChannelList,
    responses=answers(examples.CHANNELS, 422, csv="name,kind,enabled,waiting\r\noncall,webhook,true,0\r\n"),
)  # fmt: skip
def list_channels(request: Request, db: Db, chosen: FormatChoice = Format.JSON) -> Response:
    """Where alerts are told, by name. Secrets are never shown."""
    document = listing.list_channels(db.connection()).model_dump(mode="json")
    return respond(request, chosen, document, tuple(ChannelItem.model_fields), document["channels"])


@router.post(
    "/alerts/channels", summary="Make a channel", response_model=ChannelItem,
    responses=answers(examples.CHANNEL, 403, 422),
)  # fmt: skip
def make_channel(request: Request, state: State, body: NewChannel) -> ChannelItem:
    """Settings are checked; nothing is sent. Needs an admin token."""
    wanted = Wanted(body.name, body.kind, body.settings, body.enabled)
    with write_transaction(state.engine) as connection:
        stored.create(connection, wanted, _author(request, state), _options(request).vault)
        return listing.get_channel(connection, body.name)


@router.get(
    "/alerts/channels/{name}", summary="Show a channel", response_model=ChannelItem,
    responses=answers(examples.CHANNEL, 404, 422),
)  # fmt: skip
def show_channel(db: Db, name: Name) -> ChannelItem:
    """Settings without secrets, and how it goes."""
    return listing.get_channel(db.connection(), name)


@router.put(
    "/alerts/channels/{name}", summary="Change a channel", response_model=ChannelItem,
    responses=answers(examples.CHANNEL, 403, 404, 422),
)  # fmt: skip
def change_channel(request: Request, state: State, name: Name, body: ChannelBody) -> ChannelItem:
    """Replaces the settings. Secrets that are left out stay, unless the address changes. Needs an admin
    token.
    """
    wanted = Wanted(name, body.kind, body.settings, body.enabled)
    with write_transaction(state.engine) as connection:
        stored.change(connection, wanted, _author(request, state), _options(request).vault)
        return listing.get_channel(connection, name)


@router.delete(
    "/alerts/channels/{name}", summary="Remove a channel", response_model=ChannelList,
    responses=answers(examples.CHANNELS, 403, 404, 422),
)  # fmt: skip
def remove_channel(request: Request, state: State, name: Name) -> ChannelList:
    """What waits for it is given up. Answers the channels that are left. Needs an admin token."""
    with write_transaction(state.engine) as connection:
        stored.remove(connection, name, _author(request, state))
        return listing.list_channels(connection)


@router.post(
    "/alerts/channels/{name}/enable", summary="Turn a channel on", response_model=ChannelItem,
    responses=answers(examples.CHANNEL, 403, 404, 422),
)  # fmt: skip
def enable_channel(request: Request, state: State, name: Name) -> ChannelItem:
    """Also one that was turned off because its receiver wanted nothing more (410). Needs an admin token."""
    return _switch(request, state, name, True)


@router.post(
    "/alerts/channels/{name}/disable", summary="Turn a channel off", response_model=ChannelItem,
    responses=answers(examples.CHANNEL, 403, 404, 422),
)  # fmt: skip
def disable_channel(request: Request, state: State, name: Name) -> ChannelItem:
    """What waits for it stays, until it is turned on again or too old. Needs an admin token."""
    return _switch(request, state, name, False)


def _switch(request: Request, state: State, name: str, enabled: bool) -> ChannelItem:
    with write_transaction(state.engine) as connection:
        stored.switch(connection, name, enabled, _author(request, state))
        return listing.get_channel(connection, name)


@router.post(
    "/alerts/channels/{name}/test", summary="Test a channel", response_model=TestResult,
    responses=answers(examples.TRIED, 403, 404, 422),
)  # fmt: skip
def test_channel(request: Request, state: State, name: Name) -> TestResult:
    """Sends a test notification now, once, and says what came of it. Needs an admin token."""
    tried = try_channel(state.engine, name, WORKER, state.clock, _options(request))
    return TestResult(
        delivery_id=tried.delivery_id, outcome=tried.outcome, reason=tried.reason,
        status_code=tried.status_code, latency_ms=tried.latency_ms,
    )  # fmt: skip


@router.get(
    "/alerts/deliveries", summary="List deliveries", response_model=DeliveryList,
    responses=answers(
        examples.DELIVERIES, 422, csv="id,channel,status,title\r\n16,oncall,sent,[FIRING critical] …\r\n"
    ),
)  # fmt: skip
def list_deliveries(
    request: Request, db: Db, channel: OfChannel = None, status: OfStatus = None, limit: Limit = 100,
    cursor: Cursor = None, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """What was sent, waits, or was given up, newest first."""
    page = listing.list_deliveries(db.connection(), channel, status, limit, cursor)
    document = page.model_dump(mode="json")
    return respond(request, chosen, document, tuple(DeliveryItem.model_fields), document["deliveries"])


@router.get(
    "/alerts/deliveries/{number}", summary="Show a delivery", response_model=DeliveryDetail,
    responses=answers(examples.DETAIL, 404, 422),
)  # fmt: skip
def show_delivery(db: Db, number: Number) -> DeliveryDetail:
    """Its attempts and what it says."""
    return listing.get_delivery(db.connection(), number)


@router.post(
    "/alerts/deliveries/{number}/replay", summary="Send a delivery again", response_model=ReplayReceipt,
    responses=answers(examples.REPLAYED, 403, 404, 422),
)  # fmt: skip
def replay_delivery(request: Request, state: State, number: Number) -> ReplayReceipt:
    """With its old webhook-id, so that receivers which had it can tell. Needs an admin token."""
    author = _author(request, state)
    replay(state.engine, number, author.at_ms, author.actor)
    return ReplayReceipt(id=number, status="pending")
