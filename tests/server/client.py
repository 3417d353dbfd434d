"""A synchronous client of the application in this process: real ASGI layers and routes, no socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI


class Web:
    """Sends requests to an application; redirects are not followed, errors of the server are answers."""

    def __init__(self, app: FastAPI, base_url: str = "http://127.0.0.1:8200") -> None:
        self.app = app
        self.base_url = base_url

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return the answer."""

        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.base_url) as client:
                return await client.request(method, path, **options)

        return asyncio.run(go())

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Return the answer to GET."""
        return self.request("GET", path, **options)

    def api(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of a good answer under /api/v1; ``from_`` stands for ``from``."""
        named = {name.rstrip("_"): value for name, value in parameters.items()}
        answer = self.get(f"/api/v1{path}", params=named)
        assert answer.status_code == 200, answer.text
        return answer.json()
