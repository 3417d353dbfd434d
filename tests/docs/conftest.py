"""A running server with seeded data, for the examples of the guides."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from tests.docs.seed import seed_batches

from specscope_server.app import create_app
from specscope_server.settings import Settings
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

_START_SECONDS = 120.0


@pytest.fixture(scope="session")
def seeded_server(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a server that has watched gpu1:30000 for two hours."""
    path = tmp_path_factory.mktemp("docs") / "specscope.sqlite3"
    path.write_bytes(sqlite_template.read_bytes())
    engine = create_store_engine(f"sqlite:///{path}")
    writer = IngestWriter(engine)
    for batch in seed_batches(time.time_ns() // 1_000_000):
        writer.apply(batch)
    app = create_app(Settings(database=f"sqlite:///{path}"), engine=engine)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{_port(server)}"
    finally:
        server.should_exit = True
        thread.join()
        engine.dispose()


def _port(server: uvicorn.Server) -> int:
    deadline = time.monotonic() + _START_SECONDS
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port
