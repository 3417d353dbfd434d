"""The story as it is served: engines with the probe follow each other at the address that is watched.

One engine can be switched from situation to situation while it runs; each has a stretch of time of its own,
for which the product is asked.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec
from tests.real_model.situations import Switch
from tests.support.probe import settled
from tests.support.product import Document, Product
from tests.support.real_model import RealModel, ask
from tests.support.rig import RunningRig
from tests.support.story import SERVER, References, engine, make_references, probing, specscope

from specscope_collectors.board import Board, Watched
from specscope_collectors.clock import system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.observations import Batch, Launch, RequestRecord, Resume, Target
from specscope_collectors.sources.canary.job import Config, build

ALL_TIME = {"from": "now-1h", "to": "now+1m"}
CANARY_TOKENS = 16
AT_ONCE = 8
WINDOW_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """How many of the prompts an engine is asked, and for how many tokens each. A canary asks all of them."""

    prompts: int = 16
    tokens: int = 8
    is_canary: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """One situation: when it was served, and what was counted."""

    launch: int
    span: Mapping[str, str]
    histogram: Mapping[int, int]
    """Cycles by accepted drafts, as the engine's answers say."""
    counted: Mapping[int, int]
    """Drafts accepted by position as the product counted them, cycles at 0."""
    findings: tuple[str, ...]
    """Kinds of what the Sources page said then that cannot be, newest launch."""
    run: int | None
    """Of the canary."""

    @property
    def accept_length(self) -> float:
        """τ as counted from the histogram: drafts beyond a stop are work, too."""
        cycles = sum(self.histogram.values())
        return 1 + sum(drafts * count for drafts, count in self.histogram.items()) / cycles


@dataclass
class Story:
    """The product with its references, and the engine that runs now, if any."""

    product: Product
    model: RealModel
    site: Path
    folder: Path
    port: int
    references: References = field(init=False)
    ids: dict[str, int] = field(init=False)
    served: dict[str, Served] = field(default_factory=dict)
    running: RunningRig | None = None
    _switch: Switch = field(init=False)
    _spool: Path = field(init=False)
    _launch: Document = field(default_factory=dict)
    _before: dict[int, int] | None = None
    """What was counted when the last situation ended; None: something else was asked since then."""

    def __post_init__(self) -> None:
        self.references = make_references(self.model, self.folder)
        self.ids = self.references.upload(self.product.base_url)

    def launch(self, head: str, name: str) -> None:
        """End the engine, and start one with this head; the product has noticed it when this returns."""
        self.end()
        folder = self.folder / name
        folder.mkdir()
        self._switch, self._spool = Switch(folder / "fault.json"), folder / "spool"
        own = probing(self.site, folder, self.product.base_url, self.references.token_ids, WINDOW_SECONDS)
        self.running = engine(self.model, head, folder, own, self.port, self._switch)
        self.running.start()
        self._wait_for_launch()
        self._before = None

    def end(self) -> None:
        """End the engine that runs."""
        if self.running is not None:
            self.running.stop()
            self.running = None

    def serve(self, name: str, situation: str = "as_started", asked: Asked = Asked()) -> Served:
        """Serve prompts in a situation until the product has everything."""
        before = self._counted() if self._before is None else self._before
        self._switch.to(situation)
        time.sleep(1.2 * WINDOW_SECONDS)  # rows of before are in a window of their own
        began = datetime.now(UTC)
        histogram, run = self._canary() if asked.is_canary else (self._ask(asked), None)
        time.sleep(1.2 * WINDOW_SECONDS)
        histogram += self._ask(Asked(1, 4))  # a window ends when a cycle begins
        counted = self._counted()
        self.product.wait_for("empty spool", lambda: not list(self._spool.glob("specscope-*")))
        span = {"from": _iso(began), "to": _iso(datetime.now(UTC))}
        [server] = self.product.get("/sources", server=SERVER)["servers"]
        findings = tuple(each["kind"] for each in server["states"]["findings"])
        growth = {key: count - before.get(key, 0) for key, count in counted.items()}
        self._before = counted
        self.served[name] = Served(self._launch["id"], span, histogram, growth, findings, run)
        return self.served[name]

    def drift(self, name: str, reference: str = "right") -> Document:
        """Return what the product says of the states that were captured then."""
        asked = {"reference": self.ids[reference], "boundaries": self.ids["boundaries"]}
        one = self.served[name]
        return self.product.get("/drift", server=SERVER, launch=one.launch, **asked, **one.span)

    def summary(self, name: str) -> Document:
        """Return the acceptance of that time."""
        one = self.served[name]
        return self.product.get("/acceptance/summary", server=SERVER, launch=one.launch, **one.span)

    def paired(self, before: str, after: str) -> Document:
        """Return one canary run against another, prompt by prompt."""
        runs = {"a": self.served[before].run, "b": self.served[after].run}
        return self.product.get("/canary/compare", server=SERVER, **runs, **ALL_TIME)

    def replay(self, situation: str, *more: str) -> Document:
        """Replay training texts in a situation with the product's command; return what it prints."""
        assert self.running is not None
        self._before = None
        self._switch.to(situation)
        options = ["--server", self.running.base_url, "--dump", str(self.model.dump()), *more]
        told = specscope("reference", "replay", *options, "--format", "json", statuses=(0, 3, 4))
        found: Document = json.loads(told)
        return found

    @property
    def spool(self) -> Path:
        """Where the probe of the engine that runs leaves rows of replays."""
        return self._spool

    def _ask(self, asked: Asked) -> Counter[int]:
        assert self.running is not None
        answers = ask(self.running, self.model.prompts(asked.prompts), asked.tokens, AT_ONCE)
        return _added([answer["meta_info"]["spec_correct_drafts_histogram"] for answer in answers])

    def _canary(self) -> tuple[Counter[int], int]:
        """Let the product's own canary ask all prompts once; return the histogram and the run."""
        prompts = self.folder / "prompts.jsonl"
        lines = [{"id": f"held-out-{n}", "text": text} for n, text in enumerate(self.model.prompts())]
        prompts.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        config = Config(
            server=SERVER, interval_minutes=1e-9, settle_seconds=0, prompts_file=str(prompts),
            max_new_tokens=CANARY_TOKENS, concurrency=AT_ONCE,
        )  # fmt: skip
        sink = PushingSink(self.product.base_url)
        asyncio.run(_step(config, sink, self._launch))
        [records] = [
            [each for each in batch.observations if isinstance(each, RequestRecord)] for batch in sink.sent
        ]
        [run] = {int(record.labels["canary_run"]) for record in records}
        return _added([record.accepted_histogram or () for record in records]), run

    def _wait_for_launch(self) -> None:
        """Wait until the new start is noticed, and its counters have been read once."""

        def noticed() -> Document | None:
            answer = httpx.get(f"{self.product.base_url}/api/v1/ingest/launch", params={"server": SERVER})
            is_new = answer.is_success and answer.json()["launch_key"] != self._launch.get("launch_key")
            return answer.json() if is_new else None

        self._launch = self.product.wait_for("new launch", noticed)
        self._launch["id"] = self.product.get(f"/servers/{SERVER}/launches")["launches"][0]["id"]

        def is_measured() -> bool:
            [server] = self.product.get("/sources", server=SERVER)["servers"]
            return any(probe["parts"].get("accepts") == "on" for probe in server["probes"])

        self.product.wait_for("probe of the new launch", is_measured)

    def _counted(self) -> dict[int, int]:
        """Return drafts accepted by position, cycles at 0, when the product knows all that was counted."""
        assert self.running is not None
        settled(self.running)
        now = datetime.now(UTC)

        def has_caught_up() -> bool:
            [server] = self.product.get("/sources", server=SERVER)["servers"]
            [read] = [each["last_good"] for each in server["sources"] if each["source"] == "sglang_metrics"]
            return datetime.fromisoformat(read) > now

        self.product.wait_for("newer scrape", has_caught_up)
        groups = self.product.get("/acceptance/positions", server=SERVER, launch="newest", **ALL_TIME)[
            "groups"
        ]
        if not groups:
            return {}
        [group] = groups
        assert group["evidence"] == "draft_counters"
        return {0: group["cycles"], **{each["position"]: each["accepted"] for each in group["positions"]}}


class PushingSink:
    """Batches of a job of this process, pushed to the product as another host would."""

    def __init__(self, product: str) -> None:
        self._url = f"{product}/api/v1/ingest"
        self.sent: list[Batch] = []

    def resume(self, collector_id: str) -> Resume:
        """Return how far the product has got."""
        answer = httpx.get(self._url, params={"collector_id": collector_id}).raise_for_status()
        return Resume(sequence=answer.json()["sequence"])

    def apply(self, batch: Batch) -> bool:
        """Push one batch."""
        headers = {"content-type": "application/json"}
        answer = httpx.post(self._url, content=msgspec.json.encode(batch), headers=headers, timeout=60.0)
        assert answer.is_success, answer.text
        self.sent.append(batch)
        return bool(answer.json()["batches"][0]["outcome"] == "applied")


async def _step(config: Config, sink: PushingSink, launch: Document) -> None:
    """Run the canary once for a launch that the product watches."""
    board = Board()
    target = Target(name=launch["server"], base_url=launch["base_url"])
    started = int(datetime.fromisoformat(launch["first_seen"]).timestamp() * 1000)
    board.tell(
        Watched(target, Launch(key=launch["launch_key"], time_ms=started, engine="sglang"), frozenset())
    )
    with ThreadPoolExecutor(1) as pool:
        context = JobContext(
            sink=sink, options=CollectorOptions(), clock=system_clock, monotonic=time.monotonic, pool=pool,
            board=board,
        )  # fmt: skip
        [job] = build(config, context)
        try:
            await job.step()
        finally:
            await job.close()


def _added(histograms: Sequence[Sequence[int]]) -> Counter[int]:
    total: Counter[int] = Counter()
    for each in histograms:
        total.update(dict(enumerate(each)))
    return total


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
