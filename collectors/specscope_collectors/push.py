"""Sends what waits in a spool to the server: in order, again until it is acknowledged, never in a hurry.

The server applies a batch once by its sequence, so sending again is harmless: what was acknowledged is stored
exactly once, however often either side is killed.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
import zlib
from collections.abc import Sequence

import httpx
import msgspec
import structlog
import zstandard

from specscope_collectors.clock import Clock, Monotonic, system_clock
from specscope_collectors.config import OptionsError
from specscope_collectors.observations import Target
from specscope_collectors.push_answer import Answer, Receipt, Verdict, read
from specscope_collectors.push_exchange import exchange
from specscope_collectors.push_health import SOURCE, PushHealth
from specscope_collectors.push_options import PushOptions
from specscope_collectors.push_status import PushStatus, write_status
from specscope_collectors.spool import Spool
from specscope_collectors.spool_aside import set_aside
from specscope_collectors.spool_memory import Waiting
from specscope_collectors.spool_notices import Notice
from specscope_collectors.spool_sink import SpoolSink

STATUS_SECONDS = 5.0
SMALL_BYTES = 64 * 1024
"""A request that any proxy takes."""
_ARRAY = b"\xdd"
"""MessagePack: an array whose length follows in four bytes. The batches lie in the spool ready to follow."""
WRONG_TIME = ("future", "too_old")
"""Reasons for which the server refuses what a wrong clock measured."""
COPIED = (
    "the server has measurements of {name} that this spool did not send, and takes none twice: those of this "
    "spool are lost. Was it copied, or restored? Remove the copy, so that it becomes another collector"
)
_STATES = {Verdict.DENIED: "denied", Verdict.WRONG: "wrong_server"}
log = structlog.get_logger("specscope.push")


class Pusher:
    """Pushes from one spool, on a thread of its own."""

    def __init__(
        self,
        spool: Spool,
        sink: SpoolSink,
        options: PushOptions,
        collector: Target,
        clock: Clock = system_clock,
        monotonic: Monotonic = time.monotonic,
        client: httpx.Client | None = None,
    ) -> None:
        """Raises `OptionsError` for certificates that cannot be read."""
        self._spool, self._sink, self._options, self._collector = spool, sink, options, collector
        self._clock, self._monotonic = clock, monotonic
        self._client = client or options.make_client()
        self._token = options.read_token()
        self._status = PushStatus(pid=os.getpid(), server=options.server, instance=spool.instance)
        self._most = options.most_batches
        self._encoding = "zstd"
        self._failures = 0
        self._is_full = False
        """The last request could take no more: there is probably more to send."""
        self._failing: tuple[int, float] | None = None
        """Number of the batch that makes the server fail, and since when."""
        self._health = PushHealth(spool.name_at_server(f"{collector.name}/{SOURCE}"), collector)
        self._health_at = self._status_at = 0.0
        self._shared: dict[str, list[str]] = {}
        self._collided: set[str] = set()
        self._took_seconds = 0.0
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    # Running

    def start(self) -> None:
        """Begin; returns at once."""
        if self._options.is_clear_text and self._token:
            log.warning("the token travels unencrypted: use https", server=self._options.server)
        self._thread = threading.Thread(target=self._run, name="specscope-push", daemon=True)
        self._thread.start()

    def stop(self, flush_seconds: float = 10.0) -> bool:
        """Send what waits, but not for longer than this, and end; True when nothing is left."""
        deadline = self._monotonic() + flush_seconds
        self._stopping = True
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(max(flush_seconds, 1.0))
        is_hanging = thread is not None and thread.is_alive()
        self._sink.tell(at_once=True)
        while not is_hanging and self._spool.count and self._monotonic() < deadline:
            wait = self.step()
            if wait > self._options.linger_seconds:
                time.sleep(min(wait, 0.5, max(0.0, deadline - self._monotonic())))
        self._status.state = "stopped"
        write_status(self._spool.folder, self.status())
        if not is_hanging:
            self._client.close()
        left = self._spool.count
        if left:
            log.warning("stopped with batches unsent; they are sent after the next start", batches=left)
        return left == 0

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self.step())

    def step(self) -> float:
        """Do one request if there is something to send; return in how many seconds to go on."""
        before = self._status.state
        try:
            if before == "denied":  # it may have been exchanged while we waited
                self._read_token_again()
            self._sink.tell()
            self._spool.synchronise()
            group = self._next_group()
            health = self._health_due()
            answer = self._send(group, health) if group or health else None
            wait = self._options.linger_seconds if answer is None else self._heed(answer, group)
        except OSError as error:
            wait = self._failed(Answer(Verdict.AGAIN, f"the spool cannot be read: {error}"))
        except Exception as error:  # a bug must not end the sending for good
            log.error("push failed", exc_info=error)
            wait = self._failed(Answer(Verdict.AGAIN, repr(error)[:300]))
        if self._monotonic() >= self._status_at or self._status.state != before:
            self._status_at = self._monotonic() + STATUS_SECONDS
            write_status(self._spool.folder, self.status())
        return wait

    def status(self) -> PushStatus:
        """Return how it goes now."""
        spool, now_ms = self._spool, self._clock()
        oldest_ms = now_ms
        with contextlib.suppress(OSError):  # what cannot be read is told by the step that tries
            oldest_ms = next((each.time_ms for each in spool.waiting(1, 0)), now_ms)
        return msgspec.structs.replace(
            self._status,
            time_ms=now_ms,
            waiting=spool.count,
            in_memory=spool.in_memory,
            spool_bytes=spool.size,
            oldest_seconds=max(0, now_ms - oldest_ms) / 1_000,  # clocks may be set back
            appended=spool.counts.appended,
            set_aside=spool.counts.set_aside,
            dropped=spool.counts.dropped,
            damaged_bytes=spool.damaged_bytes,
            spool_problem=spool.problem,
        )

    # What to send

    def _next_group(self) -> list[Waiting]:
        options = self._options
        found = self._spool.waiting(self._most, options.most_bytes)
        self._is_full = len(found) == self._most or self._is_large(found)
        size = 0
        for at, each in enumerate(found):
            size += zstandard.frame_content_size(each.entry.body)
            if at and size > options.most_raw_bytes:
                self._is_full = True
                return found[:at]
        return found

    def _health_due(self) -> bytes | None:
        """Return a batch about pushing; not from the spool, to not wait behind what it reports."""
        if self._monotonic() < self._health_at or self._failures:
            return None
        self._health_at = self._monotonic() + self._options.health_seconds
        sequence = self._health.next_sequence(self._client, self._options.url, self._headers())
        if sequence is None:
            return None
        batch = self._health.batch(sequence, self.status(), self._shared, self._took_seconds)
        return self._spool.compress(msgspec.msgpack.encode(batch))

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": "specscope-collector", "Content-Type": "application/msgpack"}
        return headers | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _send(self, group: Sequence[Waiting], health: bytes | None) -> Answer:
        frames = [each.entry.body for each in group] + ([health] if health else [])
        head = self._spool.compress(_ARRAY + len(frames).to_bytes(4, "big"))
        body = b"".join((head, *frames))
        if self._encoding == "gzip":
            body = _as_gzip([head, *frames])
        headers = {**self._headers(), "Content-Encoding": self._encoding}
        begun = self._monotonic()
        try:
            request = self._client.build_request("POST", self._options.url, content=body, headers=headers)
            response = exchange(self._client, request, self._monotonic, self._options.timeout_seconds)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = str(error).strip() or type(error).__name__
            return Answer(Verdict.AGAIN, f"{self._options.server} cannot be reached ({words[:200]})")
        finally:
            self._took_seconds = self._monotonic() - begun
        return read(response, len(frames), bool(self._token))

    # What to make of the answer

    def _heed(self, answer: Answer, group: Sequence[Waiting]) -> float:
        """Act on the answer and return how long to wait."""
        match answer.verdict:
            case Verdict.DONE:
                assert answer.receipt is not None
                return self._done(answer.receipt, group)
            case Verdict.LESS if len(group) > 1:
                self._most = max(1, len(group) // 2)
                return 0.0
            case Verdict.GZIP if self._encoding == "zstd":
                log.info("the server, or a proxy before it, does not take zstd: sending gzip")
                self._encoding = "gzip"
                return 0.0
            case Verdict.LESS if not answer.is_ours and self._is_small(group):
                return self._failed(answer)  # no limit that is meant is that low
            case Verdict.BAD | Verdict.LESS:
                return self._bad(answer, group)
            case Verdict.FAILED:
                return self._server_failed(answer, group)
        return self._failed(answer)

    def _done(self, receipt: Receipt, group: Sequence[Waiting]) -> float:
        for sent, got in zip(group, receipt.batches, strict=False):
            self._look_at_repeat(sent, got.outcome, got.collector_id, got.applied_up_to)
            self._look_at_sharing(sent.entry.target, got.also_collected_by)
            self._status.refused_times += sum(got.refused.get(reason, 0) for reason in WRONG_TIME)
        if group:
            self._spool.acknowledge(group[-1].number)
        if any(got.outcome == "repeated" for got in receipt.batches[len(group) :]):
            self._health.ask_again()
        self._status.sent += len(group)
        self._status.repeated += receipt.repeated
        self._most = min(self._options.most_batches, self._most * 2)
        self._succeeded()
        return 0.0 if self._is_full else self._options.linger_seconds

    def _is_small(self, group: Sequence[Waiting]) -> bool:
        return sum(len(each.entry.body) for each in group) <= SMALL_BYTES

    def _is_large(self, group: Sequence[Waiting]) -> bool:
        return sum(len(each.entry.body) for each in group) * 2 > self._options.most_bytes

    def _succeeded(self) -> None:
        if self._status.state != "ok":
            log.info("pushing", server=self._options.server, waiting=self._spool.count)
        self._failures, self._failing = 0, None
        self._status.state, self._status.problem = "ok", ""
        self._status.last_success_ms = self._clock()

    def _look_at_repeat(self, sent: Waiting, outcome: str, name: str, applied_up_to: int | None) -> None:
        """A batch that was never sent before, and that the server has: somebody else uses this identity."""
        is_fresh = sent.number >= self._spool.first_fresh and not self._failures
        if outcome == "repeated" and is_fresh and applied_up_to is not None:
            self._spool.jump(name, applied_up_to)
            self._status.collided += 1
            if name not in self._collided:
                self._collided.add(name)
                self._spool.note(Notice("spool_copied", COPIED.format(name=name[:200]), sent.entry.target))

    def _look_at_sharing(self, target: Target, others: list[str]) -> None:
        if others and self._shared.get(target.name) != others:
            remedy = "stop one of them: growth of its counters is counted twice"
            log.error(
                "another collector watches this server", server=target.name, others=others, remedy=remedy
            )
        if others:
            self._shared[target.name] = others
        else:
            self._shared.pop(target.name, None)

    def _bad(self, answer: Answer, group: Sequence[Waiting]) -> float:
        """Set aside what can never be applied, once it is known which batch it is."""
        if not group:
            return self._failed(answer)
        if answer.place is None and len(group) > 1:
            self._most = len(group) // 2
            return 0.0
        place = answer.place or 0
        if place:
            self._spool.acknowledge(group[place - 1].number)
            self._status.sent += place
        if place < len(group):
            set_aside(self._spool, group[place], answer.problem)
        self._succeeded()
        return 0.0

    def _server_failed(self, answer: Answer, group: Sequence[Waiting]) -> float:
        """Wait long before a batch is taken for the cause: the server may be broken altogether."""
        if not group:
            return self._failed(answer)
        place = answer.place if answer.place is not None and answer.place < len(group) else 0
        if place:
            self._spool.acknowledge(group[place - 1].number)
            self._status.sent += place
        number = group[place].number
        if self._failing is None or self._failing[0] != number:
            self._failing = (number, self._monotonic())
        if answer.place is None:
            self._most = 1  # so that it will be known which one it is
        if self._monotonic() - self._failing[1] < self._options.stuck_seconds:
            return self._failed(answer)
        set_aside(self._spool, group[place], answer.problem)
        self._failing = None
        return 0.0

    def _read_token_again(self) -> None:
        try:
            self._token = self._options.read_token()
        except OptionsError as error:
            log.error("no token", reason=str(error))

    def _failed(self, answer: Answer) -> float:
        """Say what is wrong, once, and return how long to wait: ever longer, at random (full jitter)."""
        options, self._failures = self._options, self._failures + 1
        state = _STATES.get(answer.verdict, "waiting")
        if (state, answer.problem) != (self._status.state, self._status.problem):
            log.warning(
                "not pushed; batches wait in the spool", reason=answer.problem, waiting=self._spool.count
            )
        self._status.state, self._status.problem = state, answer.problem
        if answer.verdict in _STATES:
            return options.longest_wait_seconds
        longest = options.first_wait_seconds * 2.0 ** min(self._failures - 1, 30)
        chance = random.random() * min(longest, options.longest_wait_seconds)  # noqa: S311 (no secret)
        return max(answer.retry_seconds, chance, options.first_wait_seconds / 10)


def _as_gzip(frames: Sequence[bytes]) -> bytes:
    unpack, pack = zstandard.ZstdDecompressor(), zlib.compressobj(6, wbits=16 + zlib.MAX_WBITS)
    parts = [pack.compress(unpack.decompress(frame)) for frame in frames]
    return b"".join((*parts, pack.flush()))
