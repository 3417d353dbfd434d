"""The demo engine as a web application: answers like SGLang, from a `Player` that follows the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from specscope_server.demo import info
from specscope_server.demo.player import Player
from specscope_server.demo.scheduler import Scheduler
from specscope_server.demo.state_spool import StateSpool
from specscope_server.kit.clock import Clock

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"
KEEP_UP_SECONDS = 0.5
RESTARTING = "The demo engine is restarting, as its story has it; it answers again within seconds.\n"

Answer = Callable[[Scheduler], Response]


def _route(path: str, player: Player, clock: Clock, answer: Answer) -> Route:
    """Return a GET route that answers 503 while the engine restarts."""

    async def endpoint(_: Request) -> Response:
        player.advance(clock())
        scheduler = player.current
        if scheduler is None:
            return PlainTextResponse(RESTARTING, status_code=503)
        return answer(scheduler)

    return Route(path, endpoint, methods=["GET"])


def _keep_up(player: Player, clock: Clock, spool: StateSpool | None) -> Callable[[Starlette], Any]:
    """Return a lifespan that plays along, so that a scrape after a long pause has little to catch up with."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async def play() -> None:
            while True:
                player.advance(clock())
                if spool is not None:
                    await asyncio.to_thread(spool.step, player)
                await asyncio.sleep(KEEP_UP_SECONDS)

        task = asyncio.create_task(play())
        yield
        task.cancel()

    return lifespan


def create_app(
    player: Player, clock: Clock, host: str, port: int, spool: StateSpool | None = None
) -> Starlette:
    """Return the application; every endpoint speaks of the launch that is up at that moment.

    ``host`` and ``port`` are what ``/server_info`` says the engine listens on.
    """

    def server_info(scheduler: Scheduler) -> Response:
        if player.reports:
            player.reports.seen(scheduler.launch.index)
        return JSONResponse(info.server_info(player, scheduler, host, port))

    answers: dict[str, Answer] = {
        "/metrics": lambda scheduler: PlainTextResponse(player.metrics(scheduler), media_type=METRICS_TYPE),
        "/server_info": server_info,
        "/get_server_info": server_info,
        "/v1/loads": lambda scheduler: JSONResponse(info.loads(player, scheduler)),
        "/model_info": lambda _: JSONResponse(info.model_info(player)),
        "/get_model_info": lambda _: JSONResponse(info.model_info(player)),
        "/v1/models": lambda _: JSONResponse(info.models(player)),
    }
    routes = [_route(path, player, clock, answer) for path, answer in answers.items()]
    return Starlette(routes=routes, lifespan=_keep_up(player, clock, spool))
