"""Silences over REST. Changes need the scope ``admin``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from specscope_server.alerts.silences import examples, service
from specscope_server.alerts.silences import preview as previews
from specscope_server.alerts.silences.schemas import (
    SilenceBody,
    SilenceItem,
    SilenceList,
    SilencePreview,
    SilenceQuestion,
    SilenceState,
)
from specscope_server.kit.web.actor import actor_of
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.state import Db, State

router = APIRouter(tags=["alerts"])

Number = Annotated[int, Path(ge=0, le=MAX_ID, description="Id of a silence, as listed")]
OfState = Annotated[SilenceState | None, Query(alias="state", description="Only those that stand so")]


@router.get(
    "/alerts/silences", summary="List silences", response_model=SilenceList,
    responses=answers(examples.LIST, 422),
)  # fmt: skip
def list_silences(db: Db, state: State, of_state: OfState = None) -> SilenceList:
    """Those that end last come first; ones that are over stay in the list for as long as history is kept."""
    return service.list_silences(db.connection(), of_state, state.clock())


@router.post(
    "/alerts/silences", summary="Silence alerts", response_model=SilenceItem,
    responses=answers(examples.ITEM, 403, 422),
)  # fmt: skip
def make_silence(request: Request, state: State, body: SilenceBody) -> SilenceItem:
    """Nobody is told of new alerts that match, until it ends. They are evaluated and shown all the same, and
    channels that were told of one before are told when it is over.
    """
    return service.create(state.engine, body, actor_of(request), state.clock())


@router.post(
    "/alerts/silences/preview", summary="Show what a silence would mute", response_model=SilencePreview,
    responses=answers(examples.PREVIEW, 403, 422),
)  # fmt: skip
def preview_silence(db: Db, body: SilenceQuestion) -> SilencePreview:
    """The alerts that a silence with these matchers would match now, by name. Nothing is made or changed."""
    return previews.preview(db.connection(), body)


@router.get(
    "/alerts/silences/{silence_id}", summary="Show a silence", response_model=SilenceItem,
    responses=answers(examples.ITEM, 404, 422),
)  # fmt: skip
def show_silence(db: Db, state: State, silence_id: Number) -> SilenceItem:
    """One silence, and how many alerts it mutes now."""
    return service.get_silence(db.connection(), silence_id, state.clock())


@router.put(
    "/alerts/silences/{silence_id}", summary="Change a silence", response_model=SilenceItem,
    responses=answers(examples.ITEM, 403, 404, 409, 422),
)  # fmt: skip
def change_silence(request: Request, state: State, silence_id: Number, body: SilenceBody) -> SilenceItem:
    """Writes it anew; one that has ended cannot be changed."""
    return service.change(state.engine, silence_id, body, actor_of(request), state.clock())


@router.delete(
    "/alerts/silences/{silence_id}", summary="End a silence", response_model=SilenceItem,
    responses=answers(examples.ITEM, 403, 404, 409, 422),
)  # fmt: skip
def end_silence(request: Request, state: State, silence_id: Number) -> SilenceItem:
    """It ends now and stays in the list. What it muted and still fires is told."""
    return service.expire(state.engine, silence_id, actor_of(request), state.clock())
