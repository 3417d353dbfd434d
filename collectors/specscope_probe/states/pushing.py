"""The thread that pushes files of profiles from the spool to a server. What cannot be pushed stays there."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import time
import zlib
from datetime import datetime
from random import random
from typing import Any

from specscope_probe.parts import Part
from specscope_probe.states.batches import Belonging, Record, belonging, capture_key, parts_of
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.link import Link, LinkError
from specscope_probe.states.outbox import Outbox, Waiting

log = logging.getLogger("specscope_probe")

MAX_BYTES = 256 << 20
LOOK_SECONDS = 60.0
"""Between two looks for files of processes that are gone; own files wake the thread."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
MOST_COLLISIONS = 8


class _RefusedError(Exception):
    """The server will never take a file."""

    def __init__(self, file: Waiting, reason: str) -> None:
        super().__init__(reason)
        self.file = file


class Pusher:
    """One rank's way to one server, under one collector id."""

    def __init__(
        self, part: Part, link: Link, server: str, outbox: Outbox, collector_id: str, counts: StateCounts
    ) -> None:
        self.part = part
        self._link = link
        self._server = server
        self._outbox = outbox
        self._collector_id = collector_id
        self._counts = counts
        self._wake = threading.Event()
        self._failures = 0
        self._capture: str | None = None
        self._told = ""

    def wake(self) -> None:
        """Look for files now, unless the server is away."""
        if not self._failures:
            self._wake.set()

    def stop(self) -> None:
        """Let the thread end when it is done with the request at hand."""
        self._wake.set()

    def run(self) -> None:
        """Push until the part is switched off; an exception switches it off."""
        while self.part.is_on:
            try:
                seconds = self.step()
            except Exception as error:
                self.part.fail(error)
                return
            self._wake.wait(seconds)
            self._wake.clear()

    def step(self) -> float:
        """Push what waits, oldest first; return after how many seconds to look again."""
        files = self._outbox.waiting()
        self._counts.push_waiting = len(files)
        try:
            for file in files:
                if not self.part.is_on or not self._push(file):
                    break
                self._counts.push_waiting -= 1
        except (LinkError, OSError) as error:
            return self._failed(error)
        if self._failures:
            log.warning("specscope: state profiles are pushed to %s again", self._link.url)
        self._failures, self._told = 0, ""
        return LOOK_SECONDS

    def _failed(self, error: LinkError | OSError) -> float:
        self._counts.pushes["failed"] += 1
        if str(error) != self._told:
            self._told = str(error)
            log.warning("specscope: state profiles are not pushed, they wait in the spool: %s", error)
        wait = min(FIRST_WAIT_SECONDS * 2.0 ** min(self._failures, 10), LONGEST_WAIT_SECONDS)
        self._failures += 1
        asked = error.wait_seconds if isinstance(error, LinkError) else 0.0
        return max(wait * (0.5 + random() / 2), asked)  # noqa: S311

    def _push(self, file: Waiting) -> bool:
        """Deal with one file; False: not yet. Raises LinkError, OSError."""
        try:
            content = _read(file)
        except (ValueError, EOFError, zlib.error) as error:
            self._refuse(file, f"it is damaged: {error}")
            return True
        launch = self._link.get("/ingest/launch", server=self._server)
        now_ms = int(time.time() * 1000)
        verdict = belonging(content, launch.get("random_seed"), _milliseconds(launch), now_ms)
        if verdict is Belonging.WAIT:
            return False
        if verdict is Belonging.REFUSE:
            self._refuse(file, "it is of another start of the engine than the one that is watched")
            return True
        try:
            self._send(file, parts_of(content, self._capture), launch)
        except _RefusedError as error:
            self._refuse(error.file, str(error))
        else:
            self._capture = capture_key(content)
        return True

    def _send(self, file: Waiting, parts: list[list[Record]], launch: Record) -> None:
        """Send what the server does not have yet, then remove the file. Raises LinkError, OSError."""
        position = self._position()
        is_new = file.sequence is None
        first = position + 1 if file.sequence is None else file.sequence
        if is_new:
            file = self._outbox.claim(file, first)
        done = 0 if is_new else max(position - first + 1, 0)
        collisions = 0
        while done < len(parts):
            taken, position = self._send_part(file, first + done, parts[done], launch, is_first=not done)
            if taken:
                done += 1
            elif (collisions := collisions + 1) > MOST_COLLISIONS:
                raise LinkError(
                    f"another process pushes as {self._collector_id}; give it another server name"
                )
            else:  # somebody else has used the sequence in between
                first = position + 1 - done
                file = self._outbox.claim(file, first)
        self._counts.pushes["stored"] += 1
        file.path.unlink(missing_ok=True)

    def _send_part(
        self, file: Waiting, sequence: int, records: list[Record], launch: Record, *, is_first: bool
    ) -> tuple[bool, int]:
        """Return whether it was stored now, and the last sequence that is."""
        batch = {
            "collector_id": self._collector_id,
            "sequence": sequence,
            "target": {"name": launch["server"], "base_url": launch["base_url"]},
            "launch_key": launch["launch_key"],
            "observations": records,
        }
        try:
            [item] = self._link.post("/ingest", batch)["batches"]
        except LinkError as error:
            if error.is_final:
                raise _RefusedError(file, str(error)) from None
            if is_first and not error.is_unknown:
                self._outbox.release(file)
            raise
        return item["outcome"] == "applied", item["applied_up_to"] or sequence

    def _position(self) -> int:
        return int(self._link.get("/ingest", collector_id=self._collector_id)["sequence"])

    def _refuse(self, file: Waiting, reason: str) -> None:
        self._counts.pushes["refused"] += 1
        log.warning("specscope: %s is not pushed, and put aside: %s", file.path.name, reason)
        self._outbox.put_aside(file)


def _read(file: Waiting) -> dict[str, Any]:
    """Return what a file holds. Raises OSError, and ValueError, EOFError or zlib.error when it is damaged."""
    with gzip.open(file.path) as unpacked:
        try:
            text = unpacked.read(MAX_BYTES + 1)
        except gzip.BadGzipFile as error:
            raise ValueError(str(error)) from None
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is over {MAX_BYTES} bytes, unpacked")
    content: dict[str, Any] = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != 1:
        raise ValueError("it is no file of profiles")
    return content


def _milliseconds(launch: Record) -> int:
    """Return when a launch was first seen."""
    return int(datetime.fromisoformat(str(launch["first_seen"])).timestamp() * 1000)
