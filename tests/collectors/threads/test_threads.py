"""Who waits for work in a thread and is cancelled learns of it when the work has ended."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from specscope_collectors.threads import in_thread


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_what_the_work_returns_or_raises_is_returned_or_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def both() -> None:
        with ThreadPoolExecutor(1) as pool:
            assert await in_thread(threading.get_ident, pool) != threading.get_ident()
            assert await in_thread(lambda: 3) == 3
            with pytest.raises(ValueError, match="no"):
                await in_thread(fail, pool)

    asyncio.run(both())


@pytest.mark.parametrize("fails", [False, True])
def test_cancelled_however_often_it_waits(fails: bool) -> None:
    may_end = threading.Event()

    def work() -> None:
        assert may_end.wait(30)
        if fails:
            raise ValueError("told where it happened")

    async def cancel() -> None:
        task = asyncio.create_task(in_thread(work))
        for _ in range(3):
            await turns()
            task.cancel()
        await turns()
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_an_error_after_the_cancellation_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    test_cancelled_however_often_it_waits(fails=True)
    assert not caplog.records
