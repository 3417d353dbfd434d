"""Which servers are to be watched, from all that name some: each server once, under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from specscope_collectors.plan import Watching


@dataclass(frozen=True, slots=True)
class Merged:
    """The servers to watch, and which were left out because another has their name or address."""

    targets: tuple[Watching, ...]
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Origin → in words, why some of its servers are not watched under that name."""


def merge(lists: Mapping[str, Sequence[Watching]]) -> Merged:
    """Take the lists in their order; who comes first keeps name and address.

    The same server listed twice under the same name is no conflict.
    """
    by_name: dict[str, Watching] = {}
    by_url: dict[str, Watching] = {}
    refused: dict[str, list[str]] = {}
    for origin, listed in lists.items():
        for each in listed:
            other = by_name.get(each.target.name) or by_url.get(each.target.base_url)
            if other is None:
                by_name[each.target.name] = by_url[each.target.base_url] = each
            elif other.target != each.target:
                refused.setdefault(origin, []).append(_conflict(each, other))
    return Merged(tuple(by_name.values()), {origin: tuple(words) for origin, words in refused.items()})


def _conflict(new: Watching, old: Watching) -> str:
    listed = f"listed by {old.origin}" if old.origin else "listed already"
    if new.target.name == old.target.name:
        return f"the name {new.target.name!r} is taken by {old.target.base_url} ({listed})"
    return f"{new.target.base_url} is watched as {old.target.name!r} ({listed})"


class Roster:
    """Holds what each origin lists, and passes on the merged list when it changes. Of one event loop."""

    def __init__(self, tell: Callable[[tuple[Watching, ...]], None]) -> None:
        self._tell = tell
        self._order: tuple[str, ...] = ()
        self._lists: dict[str, tuple[Watching, ...]] = {}
        self._merged = Merged(())

    def set(self, origin: str, targets: Sequence[Watching]) -> None:
        """Replace what ``origin`` lists; nothing happens for one that may not list servers any more."""
        if origin not in self._order:
            return
        self._lists[origin] = tuple(targets)
        self._update()

    def set_order(self, origins: Sequence[str]) -> None:
        """Say who may list servers, the first having the right of way; others are forgotten."""
        self._order = tuple(origins)
        self._lists = {origin: self._lists[origin] for origin in origins if origin in self._lists}
        self._update()

    @property
    def targets(self) -> tuple[Watching, ...]:
        """Return who is to be watched now."""
        return self._merged.targets

    @property
    def is_complete(self) -> bool:
        """Whether everybody who may list servers has done so."""
        return all(origin in self._lists for origin in self._order)

    def refused(self, origin: str) -> tuple[str, ...]:
        """Return why servers of ``origin`` are not watched."""
        return self._merged.refused.get(origin, ())

    def _update(self) -> None:
        before = self._merged.targets
        ordered = sorted(self._lists, key=self._order.index)
        self._merged = merge({name: self._lists[name] for name in ordered})
        if self._merged.targets != before:
            self._tell(self._merged.targets)
