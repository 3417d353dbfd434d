"""The launch that is being watched, for those who send from inside the engine."""

from __future__ import annotations

import orjson
from sqlalchemy.orm import Session

from specscope_server.ingest.schemas import LaunchItem
from specscope_server.kit.errors import NotFound
from specscope_server.kit.timeparse import to_iso
from specscope_server.store.lookup import newest_launch, server_by_name


def watched_launch(session: Session, name: str) -> LaunchItem:
    """Return the newest launch of a server. Raises `NotFound` for a server, or launch, never seen."""
    server = server_by_name(session, name)
    launch = newest_launch(session, server.id)
    if launch is None:
        raise NotFound(f"no launch of {name[:100]!r} has been seen yet; ask again when it has been scraped")
    return LaunchItem(
        server=server.name,
        base_url=server.base_url,
        launch_key=launch.key,
        first_seen=to_iso(launch.first_seen_ms),
        random_seed=seed_of(launch.config),
    )


def seed_of(config: str) -> int | None:
    """Return the seed of a configuration as it is stored; None = it has none, or something else."""
    try:
        seed = orjson.loads(config).get("random_seed")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return seed if type(seed) is int else None
