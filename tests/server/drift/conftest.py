"""Serving and training of a small synthetic target, stored as a collector and a user would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import SERVER, T0, Feed
from tests.support.synthetic_states import (
    IDS,
    MODEL,
    Floats,
    Target,
    Text,
    all_boundaries,
    profile_of,
    reference_of,
)

from specscope_collectors.references.document import Reference
from specscope_server.references.storing import store

WINDOW_MS = 600_000
TRAINED = (2, 6, 9)
PHASES = ("prefill", "verify_accepted", "verify_rejected")
Change = Callable[[Floats], Floats]


@dataclass
class Served:
    """A watched server whose states are profiled."""

    feed: Feed
    engine: Engine
    target: Target = field(default_factory=Target)
    number: int = 0

    def reference(self, document: Reference) -> int:
        """Store a reference and return its id."""
        return store(self.engine, document, T0 + self.number)[0]

    def launch(self, key: str = "a1", time_ms: int = T0, **fields: Any) -> None:
        """Begin a launch."""
        self.feed.launch(key, time_ms, model=MODEL, **fields)

    def windows(
        self, boundaries: Sequence[int] = TRAINED, count: int = 3, *, rows: int = 256, requests: int = 32,
        phases: Sequence[str] = PHASES[:2], start_ms: int = T0, told: Sequence[int | None] | None = None,
        change: Change = lambda states: states, slots: Sequence[int] | None = None, shift: float = 0.0,
        labels: dict[str, str] | None = None, known: Sequence[int] = IDS, **more: Any,
    ) -> None:  # fmt: skip
        """Send windows of ten minutes; ``change`` is applied to the states of ``slots`` (None: of all)."""
        for index in range(count):
            for phase in phases:
                self.number += 1
                text = self.target.text(rows, requests, 1_000 + self.number, shift)
                self.feed.send(
                    *(
                        self._profile(
                            text, slot, boundary, change if slots is None or slot in slots else None,
                            time_ms=start_ms + (index + 1) * WINDOW_MS, span_ms=WINDOW_MS, phase=phase,
                            boundary=(boundaries if told is None else told)[slot], labels=labels or {},
                            known=known, **{"new_requests": requests, **more},
                        )
                        for slot, boundary in enumerate(boundaries)
                    )
                )  # fmt: skip

    def _profile(
        self, text: Text, slot: int, place: int, change: Change | None, known: Sequence[int], **more: Any
    ) -> Any:
        states = self.target.states(text, place)
        return profile_of(change(states) if change else states, text, known, slot=slot, **more)


@pytest.fixture(scope="session")
def target() -> Target:
    """The target of all tests here."""
    return Target()


@pytest.fixture(scope="session")
def training(target: Target) -> Reference:
    """The reference of its training dump."""
    return reference_of(target, TRAINED)


@pytest.fixture(scope="session")
def calibration(target: Target) -> Reference:
    """The reference of all its boundaries."""
    return all_boundaries(target)


@pytest.fixture
def served(feed: Feed, store_engine: Engine, target: Target) -> Served:
    """The server with one launch, no profile and no reference yet."""
    found = Served(feed, store_engine, target)
    found.launch()
    return found


@pytest.fixture
def known(served: Served, training: Reference, calibration: Reference) -> Served:
    """The same with both references."""
    served.reference(training)
    served.reference(calibration)
    return served


@pytest.fixture
def ask(web: Web) -> Callable[..., Any]:
    """Return the answer about drift over the hour of the tests' clock."""

    def asked(path: str = "", **more: Any) -> Any:
        return web.api(f"/drift{path}", server=SERVER, from_="now-2h", to="now", **more)

    return asked
