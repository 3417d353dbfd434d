"""Servers that left the lists while no collector ran: they are gone, and nobody else would say so."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import Target
from specscope_collectors.plan import Watching
from specscope_collectors.roster import Roster


class Departures:
    """Compares what was watched before a restart with what is, once every list was read."""

    def __init__(self, roster: Roster, part: Callable[[Watching], None], origin: str) -> None:
        self._roster = roster
        self._part = part
        self._origin = origin
        self._former: list[Target] = []

    def restore(self, data: bytes) -> None:
        """Take over what `encode` returned before; what cannot be read is forgotten."""
        try:
            self._former = msgspec.msgpack.decode(data, type=list[Target])
        except msgspec.MsgspecError:
            self._former = []

    def check(self) -> None:
        """Say who is gone, as soon as it is known who is there."""
        if not self._former or not self._roster.is_complete:
            return
        present = {watching.target.name for watching in self._roster.targets}
        for target in self._former:
            if target.name not in present:
                self._part(Watching(target=target, options=CollectorOptions(), origin=self._origin))
        self._former = []

    def encode(self) -> bytes:
        """Return what outlives a restart: who is watched, and who may have gone."""
        present = {watching.target.name: watching.target for watching in self._roster.targets}
        former = {target.name: target for target in self._former}
        return msgspec.msgpack.encode(list((former | present).values()))
