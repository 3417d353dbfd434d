"""Whatever is wanted one after the other: in the end just that is kept, and what stayed was let alone."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.collect.jobs import until

from specscope_collectors.keepers import Keepers, difference

KEYS = st.sampled_from(["a", "b", "c", "d"])
WANTED = st.dictionaries(KEYS, st.integers(0, 2), max_size=4)


@dataclass
class Watcher:
    """Stands for what a key's task does."""

    working: Counter[tuple[str, int]] = field(default_factory=Counter)
    begun: Counter[tuple[str, int]] = field(default_factory=Counter)
    parted: list[str] = field(default_factory=list)
    overlaps: int = 0
    stop_seconds: float = 0.0

    async def keep(self, value: tuple[str, int], place: float) -> None:
        assert 0 <= place < 1
        self.overlaps += any(key == value[0] for key, _ in self.working.elements())
        self.begun[value] += 1
        self.working[value] += 1
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.stop_seconds)
            self.working[value] -= 1

    async def farewell(self, value: tuple[str, int]) -> None:
        self.overlaps += any(key == value[0] for key, _ in self.working.elements())
        self.parted.append(value[0])


def pairs(wanted: dict[str, int]) -> dict[str, tuple[str, int]]:
    return {key: (key, number) for key, number in wanted.items()}


@given(st.lists(st.tuples(WANTED, st.integers(0, 3)), max_size=8))
@settings(max_examples=150, deadline=None)
def test_any_sequence_ends_in_what_was_wanted_last(sequence: list[tuple[dict[str, int], int]]) -> None:
    async def go() -> None:
        watcher = Watcher()
        keepers = Keepers(watcher.keep, watcher.farewell)
        changes: Counter[tuple[str, int]] = Counter()
        before: dict[str, int] = {}
        for wanted, pauses in sequence:
            keepers.reconcile(pairs(wanted))
            changes.update((key, value) for key, value in wanted.items() if before.get(key) != value)
            before = wanted
            for _ in range(pauses):
                await asyncio.sleep(0)
        await until(lambda: sorted(watcher.working.elements()) == sorted(before.items()))
        assert watcher.overlaps == 0
        assert all(count <= changes[value] for value, count in watcher.begun.items())  # never restarted
        ever = {key for wanted, _ in sequence for key in wanted}
        await until(lambda: set(watcher.parted) >= ever - before.keys())
        await keepers.close(5)
        assert not list(watcher.working.elements())
        assert (keepers._turns, keepers._tasks) == ({}, {})

    asyncio.run(go())


def test_the_others_are_not_touched() -> None:
    async def go() -> None:
        watcher = Watcher()
        keepers = Keepers(watcher.keep, watcher.farewell)
        keepers.reconcile(pairs({"a": 1, "b": 1, "c": 1}))
        await until(lambda: sum(watcher.working.values()) == 3)
        change = keepers.reconcile(pairs({"a": 1, "b": 2, "d": 1}))
        assert (change.added, change.changed, change.removed) == (("d",), ("b",), ("c",))
        await until(lambda: watcher.parted == ["c"] and sum(watcher.working.values()) == 3)
        assert watcher.begun == {("a", 1): 1, ("b", 1): 1, ("b", 2): 1, ("c", 1): 1, ("d", 1): 1}
        await keepers.close(5)

    asyncio.run(go())


def test_the_next_of_a_key_waits_for_the_end_of_the_last() -> None:
    async def go() -> None:
        watcher = Watcher(stop_seconds=0.02)
        keepers = Keepers(watcher.keep, watcher.farewell)
        for number in range(5):
            keepers.reconcile(pairs({"a": number}))
            await asyncio.sleep(0.005)
        keepers.reconcile({})
        keepers.reconcile(pairs({"a": 9}))
        await until(lambda: list(watcher.working.elements()) == [("a", 9)])
        assert watcher.overlaps == 0
        assert watcher.parted == []  # it was back before the farewell
        await keepers.close(5)

    asyncio.run(go())


def test_one_that_ends_with_an_error_ends_alone() -> None:
    async def go() -> None:
        watcher = Watcher()

        async def keep(value: tuple[str, int], place: float) -> None:
            if value[0] == "bad":
                raise RuntimeError("a bug")
            await watcher.keep(value, place)

        keepers = Keepers(keep, watcher.farewell)
        keepers.reconcile(pairs({"bad": 1, "good": 1}))
        await until(lambda: watcher.working[("good", 1)] == 1)
        keepers.reconcile(pairs({"good": 1}))
        await until(lambda: watcher.parted == ["bad"])
        assert watcher.working[("good", 1)] == 1
        await keepers.close(5)

    asyncio.run(go())


def test_close_does_not_wait_for_ever() -> None:
    async def go() -> float:
        async def stubborn(value: int, place: float) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.5)

        keepers = Keepers(stubborn)
        keepers.reconcile({"a": 1})
        await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        await keepers.close(0.05)
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(go()) < 0.4


def test_ten_thousand_changes_leave_nothing_behind() -> None:
    async def go() -> tuple[int, int, int]:
        watcher = Watcher()
        keepers = Keepers(watcher.keep, watcher.farewell)
        lists = [pairs({"a": 0, f"k{n % 7}": n % 3}) for n in range(21)]

        async def turn(count: int) -> None:
            for n in range(count):
                keepers.reconcile(lists[n % 21])
                if n % 5 == 0:
                    await asyncio.sleep(0)
            await until(lambda: len(asyncio.all_tasks()) == 3 and not keepers._ending)
            watcher.parted.clear()

        await turn(1_000)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        await turn(10_000)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        started = watcher.begun[("a", 0)]
        left = len(keepers._turns)
        await keepers.close(5)
        return grown, started, left

    grown, started, left = asyncio.run(go())
    assert grown < 200_000
    assert (started, left) == (1, 2)


@given(WANTED, WANTED)
def test_the_difference_turns_one_into_the_other(kept: dict[str, int], wanted: dict[str, int]) -> None:
    change = difference(kept, wanted)
    result = {key: value for key, value in kept.items() if key not in change.removed}
    result |= {key: wanted[key] for key in (*change.added, *change.changed)}
    assert result == wanted
    assert len({*change.added, *change.changed, *change.removed}) == sum(
        map(len, (change.added, change.changed, change.removed))
    )
