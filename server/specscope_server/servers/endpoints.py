"""Servers and their launches."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID, Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice
from specscope_server.kit.web.state import Db, State
from specscope_server.servers import examples, service
from specscope_server.servers.schemas import LaunchDetail, LaunchItem, LaunchList, ServerItem, ServerList

router = APIRouter(tags=["servers"])
# Names may hold slashes (a server behind a path prefix), so the longer route stands first.
_SERVER_COLUMNS = ("name", "base_url", "state", "created", "last_seen", "age_seconds", "launches", "is_demo")


@router.get(
    "/servers",
    summary="List servers",
    response_model=ServerList,
    responses=answers(
        examples.SERVERS, 422, csv="name,base_url,state\r\ngpu1:30000,http://gpu1:30000,ok\r\n"
    ),
)
def servers(
    request: Request,
    db: Db,
    state: State,
    limit: Limit = 100,
    cursor: Cursor = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:
    """All watched servers by name, each with its overall state and newest launch."""
    page = service.list_servers(db, state.clock(), state.stale_after_ms, limit, cursor)
    document = page.model_dump(mode="json")
    return respond(request, chosen, document, _SERVER_COLUMNS, document["servers"])


@router.get(
    "/servers/{name:path}/launches",
    summary="List the launches of a server",
    response_model=LaunchList,
    responses=answers(examples.LAUNCHES, 404, 422, csv="id,server,key\r\n7,gpu1:30000,9f2c41d07b53e6aa\r\n"),
)
def launches(
    name: str,
    request: Request,
    db: Db,
    limit: Limit = 100,
    cursor: Cursor = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:
    """Every start of the server with one resolved configuration, newest first."""
    document = service.list_launches(db, name, limit, cursor).model_dump(mode="json")
    return respond(request, chosen, document, tuple(LaunchItem.model_fields), document["launches"])


@router.get(
    "/servers/{name:path}",
    summary="Show a server",
    response_model=ServerItem,
    responses=answers(examples.SERVER, 404, 422),
)
def server(name: str, db: Db, state: State) -> ServerItem:
    """One watched server with its overall state and newest launch."""
    return service.get_server(db, name, state.clock(), state.stale_after_ms)


@router.get(
    "/launches/{launch_id}",
    summary="Show a launch and what changed",
    response_model=LaunchDetail,
    responses=answers(examples.LAUNCH_DETAIL, 404, 422),
)
def launch(launch_id: Annotated[int, Path(ge=0, le=MAX_ID)], db: Db) -> LaunchDetail:
    """One launch with its redacted configuration, and what was added, removed or changed since the launch
    before.
    """
    return service.get_launch(db, launch_id)
