"""What the demo engine's clients pass on: `meta_info` of each finished request, as its version writes it.

Clients begin once a collector has read the launch, so that every report belongs to a launch that is known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from specscope_server.demo.scheduler import Request

Send: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, str]], None]
"""(answer, labels) → nothing; must not wait."""
WITHOUT_HISTOGRAM = "0.5.8"


@dataclass(slots=True)
class Reports:
    """Passes finished requests on. ``seed`` makes their ids, which differ between runs."""

    send: Send
    version: str
    seed: str
    known_launch: int | None = None
    _ids: random.Random = field(init=False)

    def __post_init__(self) -> None:
        """Seed the ids."""
        self._ids = random.Random(f"{self.seed}/{self.version}/ids")  # noqa: S311

    def seen(self, launch: int) -> None:
        """Note that a collector has read this launch."""
        self.known_launch = launch

    def finished(
        self, launch: int, request: Request, num_steps: int, finished_ms: float, took_ms: float
    ) -> None:
        """Pass on a request that finished at ``finished_ms`` (UTC epoch ms)."""
        if launch == self.known_launch:
            meta = self._meta(request, num_steps, finished_ms, took_ms)
            self.send({"meta_info": meta}, {"tenant": request.tenant})

    def _meta(self, request: Request, num_steps: int, finished_ms: float, took_ms: float) -> dict[str, Any]:
        meta: dict[str, Any] = {
            "id": f"demo-{self._ids.getrandbits(96):024x}",
            "finish_reason": {"type": "length", "length": request.max_tokens},
            "prompt_tokens": request.prompt_tokens,
            "completion_tokens": request.emitted,
            "cached_tokens": request.cached_tokens,
            "e2e_latency": took_ms / 1000,
            "decode_finished_ts" if self.version == WITHOUT_HISTOGRAM else "request_finished_ts": finished_ms
            / 1000,
        }
        return meta | (self._speculation(request, num_steps) if num_steps else {})

    def _speculation(self, request: Request, num_steps: int) -> dict[str, Any]:
        accepted = sum(drafts * cycles for drafts, cycles in enumerate(request.histogram))
        proposed = request.verify_calls * num_steps
        if self.version == WITHOUT_HISTOGRAM:
            counts = {"spec_accept_token_num": accepted, "spec_draft_token_num": proposed}
        else:
            counts = {"spec_num_correct_drafts": accepted, "spec_num_proposed_drafts": proposed}
            counts["spec_correct_drafts_histogram"] = request.histogram  # type: ignore[assignment]
        return {"spec_verify_ct": request.verify_calls, **counts}
