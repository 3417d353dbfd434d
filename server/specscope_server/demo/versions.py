"""The SGLang versions the demo can answer like, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

from specscope_server.demo import families_0_5_8, families_0_5_23
from specscope_server.demo.exposition import Family
from specscope_server.demo.histograms import QUEUE, QUEUE_OLD
from specscope_server.demo.story import Launch
from specscope_server.demo.telemetry import Rules, Telemetry


@dataclass(frozen=True, slots=True)
class EngineVersion:
    """One version of the engine."""

    name: str
    families: tuple[Family, ...]
    rules: Rules
    ids_are_outputs: bool
    """Whether ids of a DeepSeek or Kimi draft name what layers put out; later they name what they take in."""

    def draft_ids(self, layers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the ids by which a draft has this version capture what these layers put out."""
        return layers if self.ids_are_outputs else tuple(layer + 1 for layer in layers)

    def telemetry(self, launch: Launch) -> Telemetry:
        """Return the counters of a launch that has just come up."""
        return Telemetry(launch.up_ms, launch.plan.model.num_steps, self.rules)


OLD_RULES = Rules(
    rate_counts_bonus=True, decode_clears_hit_rate=True, idle_is_shown_at_once=False, queue_bounds=QUEUE_OLD
)
NEW_RULES = Rules(
    rate_counts_bonus=False, decode_clears_hit_rate=False, idle_is_shown_at_once=True, queue_bounds=QUEUE
)
VERSIONS = {
    version.name: version
    for version in (
        EngineVersion("0.5.8", families_0_5_8.FAMILIES, OLD_RULES, ids_are_outputs=True),
        EngineVersion("0.5.23", families_0_5_23.FAMILIES, NEW_RULES, ids_are_outputs=False),
    )
}
"""Version → how it answers."""
