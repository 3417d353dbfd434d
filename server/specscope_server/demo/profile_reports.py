"""Send the demo engine's captures to the dashboard: one before the network is tuned, one after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import httpx

from specscope_server.demo.profile import capture
from specscope_server.demo.story import Launch, Story

INTO = 0.6
"""Share of a launch's time after which it is captured: a collector knows the launch by then."""
TRIES, PAUSE_SECONDS, TIMEOUT_SECONDS = 20, 2.0, 30.0
NOTE = "simulated by the demo engine: nothing was measured"


@dataclass(frozen=True, slots=True)
class Planned:
    """One capture: when, in milliseconds since the demo began, and of which launch."""

    at_ms: float
    launch: Launch
    name: str


def plan(story: Story) -> list[Planned]:
    """Return the captures of a story: the last launch before the tuning, and the first one after it."""
    found = []
    launches = story.launches()
    for before, after in pairwise(launches):
        if not before.plan.model.network_tuned and after.plan.model.network_tuned:
            for launch, name in ((before, "before NCCL tuning (demo)"), (after, "after NCCL tuning (demo)")):
                found.append(Planned(launch.up_ms + INTO * (launch.down_ms - launch.up_ms), launch, name))
    return found


@dataclass(slots=True)
class CaptureReports:
    """Waits for each moment in a thread of its own; what cannot be sent is left out."""

    url: str
    server: str
    story: Story
    started_ms: int
    clock: Callable[[], int]
    ended: threading.Event

    def start(self) -> None:
        """Start the thread; it ends with `ended` or the last capture."""
        threading.Thread(target=self.run, name="demo-captures", daemon=True).start()

    def run(self) -> None:
        """Send each capture when its time has come."""
        for each in plan(self.story):
            until_ms = self.started_ms + each.at_ms
            if self.ended.wait(max(until_ms - self.clock(), 0.0) / 1_000):
                return
            self._send(each)

    def _send(self, each: Planned) -> None:
        body = capture(each.launch.plan.model, self.clock(), f"{self.started_ms}/{each.name}")
        asked = {"server": self.server, "name": each.name, "note": NOTE}
        headers = {"Content-Type": "application/x-tar"}
        with httpx.Client(base_url=self.url, timeout=TIMEOUT_SECONDS) as client:
            for _ in range(TRIES):
                try:
                    answer = client.post("/api/v1/traces", params=asked, content=body, headers=headers)
                    if answer.is_success:
                        return
                except httpx.HTTPError:
                    pass  # the dashboard may be starting still
                if self.ended.wait(PAUSE_SECONDS):
                    return
