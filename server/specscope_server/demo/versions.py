"""The SGLang versions the demo can answer like, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

from specscope_server.demo import families_0_5_8, families_0_5_23, histograms
from specscope_server.demo.exposition import Family
from specscope_server.demo.story import Launch
from specscope_server.demo.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class EngineVersion:
    """One version of the engine."""

    name: str
    families: tuple[Family, ...]
    rate_counts_bonus: bool
    idle_is_shown_at_once: bool
    queue_bounds: tuple[float, ...]

    def telemetry(self, launch: Launch) -> Telemetry:
        """Return the counters of a launch that has just come up."""
        return Telemetry(
            launch.up_ms,
            launch.plan.model.num_steps,
            self.rate_counts_bonus,
            self.idle_is_shown_at_once,
            self.queue_bounds,
        )


VERSIONS = {
    version.name: version
    for version in (
        EngineVersion("0.5.8", families_0_5_8.FAMILIES, True, False, histograms.QUEUE_OLD),
        EngineVersion("0.5.23", families_0_5_23.FAMILIES, False, True, histograms.QUEUE),
    )
}
"""Version → how it answers."""
