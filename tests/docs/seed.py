"""Two hours of a made-up server, SGLang 0.5.15 with K = 5, as a collector would have sent it."""

from __future__ import annotations

from collections.abc import Iterator

from specscope_collectors.observations import (
    Batch,
    HealthState,
    Increment,
    Launch,
    Level,
    Observation,
    SourceHealth,
    SpeculativeConfig,
    Target,
)

TARGET = Target(name="gpu1:30000", base_url="http://gpu1:30000")
KEY = "5eed"
STEP_MS = 10_000
STEPS = 720
LABELS = {"model_name": "llama", "tp_rank": "0"}

FINISHED, CALLS, TOKENS = 4, 100, 284
"""Per scrape; τ = (284 − 4) / 100 = 2.8."""


def seed_batches(now_ms: int) -> Iterator[Batch]:
    """Yield the batches, oldest first; the newest ends at ``now_ms``."""
    for step in range(STEPS):
        time_ms = now_ms - (STEPS - 1 - step) * STEP_MS
        first = [launch(time_ms)] if step == 0 else []
        yield Batch(
            collector_id="docs",
            sequence=step + 1,
            target=TARGET,
            launch_key=KEY,
            observations=(*first, *measurements(time_ms)),
        )


def launch(time_ms: int) -> Launch:
    """Return the launch."""
    speculative = SpeculativeConfig(
        algorithm="EAGLE3", num_steps=5, eagle_topk=1, num_draft_tokens=6, draft_model="drafts/eagle3"
    )
    return Launch(
        key=KEY,
        time_ms=time_ms,
        engine="sglang",
        engine_version="0.5.15",
        version_source="server_info",
        model="llama",
        served_model_name="llama",
        speculative=speculative,
        config={"speculative_num_steps": 5},
    )


def measurements(time_ms: int) -> list[Observation]:
    """Return what one scrape gave."""
    growth = {"tokens.generated": TOKENS, "requests.finished": FINISHED, "spec.verify_calls": CALLS}
    levels = {
        "spec.accept_length": 2.8,
        "spec.engine_accept_rate": 0.36,
        "spec.num_steps": 5,
        "spec.num_draft_tokens": 6,
        "requests.running": 8,
        "requests.queued": 0,
    }
    health = SourceHealth(
        source="sglang_metrics",
        time_ms=time_ms,
        state=HealthState.OK,
        url=f"{TARGET.base_url}/metrics",
        duration_seconds=0.01,
    )
    return [
        *(
            Increment(metric=m, labels=LABELS, time_ms=time_ms, span_ms=STEP_MS, value=v)
            for m, v in growth.items()
        ),
        *(Level(metric=m, labels=LABELS, time_ms=time_ms, value=v) for m, v in levels.items()),
        health,
    ]
