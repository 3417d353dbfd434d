"""What the demo engine's probe writes: windows of states of the layers that it captures (simulated)."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from specscope_collectors.observations import StateProfile
from specscope_server.demo.info import MODEL_CLASS
from specscope_server.demo.player import Player
from specscope_server.demo.state_model import HIDDEN_SIZE, Floats, states_of, text_of
from specscope_server.demo.states import profile_of
from specscope_server.demo.story import Launch

FORMAT = 1
ROWS, REQUESTS = 256, 32
PHASES = ("prefill", "verify_accepted")
STORY_WINDOW_MS, LEAST_WINDOW_MS, LATER_WINDOW_MS = 240_000, 2_000, 60_000
"""A window of story time; on the clock at least so long, and so long when the story is told."""
TOLD_MS = 18_000_000
"""Of story time."""
SHOWN_ROWS, SHOWN_VALUES = 2, 5


def captured_of(launch: Launch) -> tuple[int, ...]:
    """Return the boundaries that a launch captures: its layers' outputs."""
    return tuple(layer + 1 for layer in launch.plan.aux_layers)


@dataclass(slots=True)
class StateSpool:
    """Writes windows into a folder, as the probe of one rank does."""

    folder: Path
    next_ms: float = 0.0
    number: int = 0
    active_launch: int | None = None

    def step(self, player: Player) -> Path | None:
        """Write a window if one has ended in which requests ran; return its file."""
        scheduler = player.current
        if scheduler is None or not scheduler.launch.plan.model.num_steps or not scheduler.running:
            return None
        window_ms = self._window_ms(player)
        if self.active_launch != scheduler.launch.index:
            self.active_launch, self.next_ms = scheduler.launch.index, player.elapsed_ms + window_ms
        if player.elapsed_ms < self.next_ms:
            return None
        self.next_ms = player.elapsed_ms + window_ms
        return self._write(player, scheduler.launch, round(window_ms))

    def _window_ms(self, player: Player) -> float:
        speed = player.story.speed
        if player.elapsed_ms * speed > TOLD_MS:
            return LATER_WINDOW_MS
        return max(STORY_WINDOW_MS / speed, LEAST_WINDOW_MS)

    def _write(self, player: Player, launch: Launch, span_ms: int) -> Path:
        self.number += 1
        now_ms = round(player.started_ms + player.elapsed_ms)
        boundaries = captured_of(launch)
        profiles: list[StateProfile] = []
        rows: list[dict[str, Any]] = []
        for index, phase in enumerate(PHASES):
            text = text_of(ROWS, REQUESTS, 1_000 + player.seed % 1_000 + 2 * self.number + index)
            states = states_of(text, boundaries)
            for slot, place in enumerate(boundaries):
                where = {"phase": phase, "slot": slot, "boundary": place, "new_requests": REQUESTS}
                when = {"time_ms": now_ms, "span_ms": span_ms, "labels": {"tp_rank": "0"}}
                profiles.append(profile_of(states[place], text, **where, **when))
                rows += _shown(phase, slot, states[place])
        content = _document(player, launch, now_ms, boundaries, profiles, rows)
        return self._put(f"specscope-states-{now_ms}-0.json.gz", content)

    def _put(self, name: str, content: dict[str, Any]) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        hidden, path = self.folder / f".{name}", self.folder / name
        hidden.write_bytes(gzip.compress(msgspec.json.encode(content), compresslevel=1, mtime=0))
        return hidden.rename(path)


def _shown(phase: str, slot: int, states: Floats) -> list[dict[str, Any]]:
    return [
        {
            "phase": phase, "slot": slot, "position": 4 + 17 * index,
            "norm": float((states[index] ** 2).sum() ** 0.5),
            "first_values": states[index, :SHOWN_VALUES].tolist(),
        }
        for index in range(SHOWN_ROWS)
    ]  # fmt: skip


def _document(
    player: Player, launch: Launch, now_ms: int, boundaries: tuple[int, ...],
    profiles: list[StateProfile], rows: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    capture = {
        "layers": boundaries, "boundaries": boundaries, "rule": "simulated: layer i hands out its input",
        "hidden_size": HIDDEN_SIZE, "width": len(boundaries) * HIDDEN_SIZE,
        "draft_layers": player.version.draft_ids(launch.plan.aux_layers),
    }  # fmt: skip
    return {
        "format": FORMAT, "created_ms": now_ms, "rank": {"tp_rank": "0"},
        "engine_version": player.version.name, "model_class": MODEL_CLASS, "probe_version": "demo",
        "started_ms": round(player.started_ms + launch.up_ms), "random_seed": player.random_seed(launch),
        "capture": capture, "sink_limits": [None] * len(boundaries), "profiles": profiles, "rows": rows,
    }  # fmt: skip
