"""vLLM, as an engine that can be watched."""

from __future__ import annotations

from collections.abc import Collection

from specscope_collectors.engine import Ask, InfoReading, prefixed
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.finding import Finding
from specscope_collectors.observations import Launch
from specscope_collectors.sources.vllm_metrics import info
from specscope_collectors.sources.vllm_metrics.mapping import map_exposition
from specscope_collectors.sources.vllm_metrics.missing import findings_of, missing_of
from specscope_collectors.sources.vllm_metrics.renaming import WANTED
from specscope_collectors.sources.vllm_metrics.table import CAME_WITH, PREFIXES


class Vllm:
    """Names and endpoints of vLLM."""

    name = "vllm"
    title = "vLLM"
    source = "vllm_metrics"
    prefix = PREFIXES[0]
    wanted = WANTED
    telling = prefixed(CAME_WITH.values(), PREFIXES)
    metrics_off_remedy = "a proxy may hide /metrics: vLLM's own server always offers it"
    start_evidence = frozenset[str]()

    def claims(self, names: Collection[str]) -> bool:
        """Tell whether any name is vLLM's."""
        return any(name.startswith(PREFIXES) for name in names)

    def map(self, exposition: Exposition, *, adaptive: bool) -> Mapped:
        """Return the canonical series."""
        return map_exposition(exposition)

    async def info(self, ask: Ask) -> InfoReading:
        """Read ``/version`` and ``/v1/models``."""
        version, time_ms = await ask.get(info.VERSION_PATH)
        models, _ = await ask.get(info.MODELS_PATH)
        return await ask.in_thread(lambda: info.read_info(version, models, time_ms, api_key=ask.api_key))

    async def loads(self, ask: Ask, mapped: Mapped | None, launch: Launch | None) -> None:
        """Return nothing: ``/metrics`` has it all."""

    def missing(self, mapped: Mapped, launch: Launch | None) -> dict[str, str]:
        """Return what cannot be seen → how to turn it on."""
        return missing_of(mapped)

    def findings(self, mapped: Mapped | None, launch: Launch | None) -> list[Finding]:
        """Return speculation and ranks."""
        return findings_of(mapped)


ENGINE = Vllm()
