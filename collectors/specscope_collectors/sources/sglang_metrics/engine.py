"""SGLang, as an engine that can be watched."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from specscope_collectors.engine import Ask, InfoReading, LoadsReading, Told, prefixed
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.finding import Finding, lacking, ok
from specscope_collectors.observations import START_EVIDENCE, HealthState, Launch
from specscope_collectors.sources import sglang_info, sglang_loads
from specscope_collectors.sources.sglang_info.body import ServerInfo
from specscope_collectors.sources.sglang_info.fingerprint import identify
from specscope_collectors.sources.sglang_info.launch import expected_ranks
from specscope_collectors.sources.sglang_info.model import MODEL_PATH, with_model
from specscope_collectors.sources.sglang_info.reading import read_info
from specscope_collectors.sources.sglang_loads.levels import FIELDS
from specscope_collectors.sources.sglang_loads.reading import read_loads
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.missing import missing_of, reporters
from specscope_collectors.sources.sglang_metrics.table import PREFIXES, WANTED
from specscope_collectors.sources.sglang_metrics.version import CAME_WITH

LOADS_BESIDE_METRICS = frozenset({
    "spec.lifetime_accept_length", "engine.max_running_requests", "memory.weights", "memory.kv_cache",
    "memory.graphs",
})  # fmt: skip
"""What ``/v1/loads`` adds when ``/metrics`` is on; the rest would be reported twice."""


class SGLang:
    """Names and endpoints of SGLang. ``/health`` is never asked: it makes the engine run a generation."""

    name = "sglang"
    title = "SGLang"
    source = "sglang_metrics"
    prefix = PREFIXES[0]
    wanted = WANTED
    telling = prefixed(CAME_WITH.values(), PREFIXES)
    metrics_off_remedy = "start SGLang with --enable-metrics"
    start_evidence = START_EVIDENCE

    def claims(self, names: Collection[str]) -> bool:
        """Tell whether any name is SGLang's."""
        return any(name.startswith(PREFIXES) for name in names)

    def map(self, exposition: Exposition, *, adaptive: bool) -> Mapped:
        """Return the canonical series."""
        return map_exposition(exposition, adaptive=adaptive)

    async def info(self, ask: Ask) -> InfoReading:
        """Read ``/server_info``, or its old name where the new one does not exist."""
        for path in sglang_info.PATHS:
            answer, time_ms = await ask.get(path)
            if answer.state is not HealthState.DISABLED:
                break
        reading = await ask.in_thread(lambda: read_info(answer, time_ms, api_key=ask.api_key))
        if reading.info is None:
            return InfoReading(reading.health)
        found = told(reading.info)
        model, _ = await ask.get(MODEL_PATH)
        launch = await ask.in_thread(lambda: with_model(found.launch, model))
        return InfoReading(reading.health, msgspec.structs.replace(found, launch=launch))

    async def loads(self, ask: Ask, mapped: Mapped | None, launch: Launch | None) -> LoadsReading:
        """Read ``/v1/loads``; what ``/metrics`` gives, or would give with the next request, is left to it."""
        already: set[str] = set()
        if mapped is not None:
            already = {*(FIELDS.keys() - LOADS_BESIDE_METRICS), *(metric for metric, _ in mapped.levels)}
        name = launch.served_model_name if launch else None
        labels = {"model_name": name} if name else {}
        answer, time_ms = await ask.get(sglang_loads.PATH)
        reading = await ask.in_thread(lambda: read_loads(answer, time_ms, already=already, labels=labels))
        return LoadsReading(reading.health, reading.levels, reading.loads is not None)

    def missing(self, mapped: Mapped, launch: Launch | None) -> dict[str, str]:
        """Return what cannot be seen → how to turn it on."""
        return missing_of(mapped, launch)

    def findings(self, mapped: Mapped | None, launch: Launch | None) -> list[Finding]:
        """Return speculation, device timer and ranks."""
        found = [_speculation(launch)] if launch else []
        if mapped is None:
            return found
        if any(metric == "time.forward" for metric, _ in mapped.counters):
            found.append(ok("device timer", "on: device time of forward passes is reported"))
        reporting = reporters(mapped)
        if launch is not None and reporting and reporting >= expected_ranks(launch.parallelism):
            found.append(ok("ranks", f"{reporting} of {expected_ranks(launch.parallelism)} report"))
        return found


def told(info: ServerInfo) -> Told:
    """Return what ``/server_info`` says in the terms of every engine."""
    return Told(identity=identify(info), launch=sglang_info.to_launch(info, key="", time_ms=0))


def _speculation(launch: Launch) -> Finding:
    speculative = launch.speculative
    if speculative.algorithm is None:
        remedy = "start SGLang with --speculative-algorithm EAGLE3 --speculative-draft-model-path …"
        return lacking("speculation", "off in this launch", remedy)
    parts = [
        f"{speculative.algorithm}",
        f"K = {speculative.num_steps} steps",
        f"D = {speculative.num_draft_tokens} verified tokens",
        f"top-k {speculative.eagle_topk}",
        f"draft model {speculative.draft_model}",
    ]
    if speculative.adaptive:
        parts.append("adaptive")
    return ok("speculation", ", ".join(part for part in parts if "None" not in part))


ENGINE = SGLang()
