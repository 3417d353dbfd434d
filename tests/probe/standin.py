"""Stand-ins for the far side: an engine's scheduler with the methods that the probe looks for, and no model.

They are laid out like SGLang's own in the version each is named after; the real classes are tested in
`test_versions.py` and the whole engine in `test_engine.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any


class ForwardMode(Enum):
    """Names of the engine's modes."""

    EXTEND = auto()
    DECODE = auto()
    TARGET_VERIFY = auto()
    IDLE = auto()


class Lengths(list[int]):
    """A tensor of integers on the CPU."""

    is_cpu = True

    def tolist(self) -> list[int]:
        """Return the numbers."""
        return list(self)


@dataclass
class Request:
    """One request."""

    rid: str = "a"
    is_finished: bool = False
    is_retracted: bool = False

    def finished(self) -> bool:
        """Say whether it is done."""
        return self.is_finished


@dataclass
class Batch:
    """What a scheduler hands to a worker."""

    reqs: list[Request]
    forward_mode: ForwardMode = ForwardMode.DECODE


@dataclass
class Result:
    """What a worker gives back."""

    accept_lens: Lengths | None = None
    speculative_num_draft_tokens: int | None = None
    num_correct_drafts_per_req_cpu: list[int] | None = None
    accept_length_per_req_cpu: list[int] | None = None


Pass = Callable[[str], None]


@dataclass
class Runner:
    """The target's model runner. ``spend`` is told the name of what is done."""

    spend: Pass
    device: str = "cpu"

    def forward(self, forward_batch: Any, skip: bool = False) -> str:
        """Compute."""
        self.spend("forward")
        return "output"


@dataclass
class Drafter:
    """The inner draft worker."""

    spend: Pass

    def draft(self, batch: Any, *, with_topology: bool = False) -> str:
        """Draft."""
        self.spend("draft")
        return "verify input"

    def _draft_extend_for_decode(self, batch: Any, result: Any, *, kv_loc_plan: Any = None) -> None:
        self.spend("draft_extend")

    def _draft_extend_for_prefill(self, batch: Any, *rest: Any) -> str:
        self.spend("prefill_draft_extend")
        return "next input"


@dataclass
class Worker:
    """EAGLEWorkerV2 of 0.5.23 in outline."""

    spend: Pass
    target_worker: Any
    draft_worker: Any
    speculative_num_steps: int = 3
    speculative_num_draft_tokens: int = 4
    topk: int = 1
    accepts: Callable[[Batch], Sequence[int]] = lambda batch: [1] * len(batch.reqs)

    def forward_batch_generation(self, batch: Batch, on_publish: Any = None) -> Result:
        """Run one cycle."""
        self.spend("cycle")
        if batch.forward_mode is ForwardMode.EXTEND:
            self.target_worker.model_runner.forward(batch)
            self.draft_worker._draft_extend_for_prefill(batch, "hidden", "ids")
            return Result(Lengths([1] * len(batch.reqs)))
        self.draft_worker.draft(batch)
        result = self.verify(batch)
        self.draft_worker._draft_extend_for_decode(batch, result, kv_loc_plan=None)
        return result

    def verify(self, batch: Batch, grammar_barrier: Any = None) -> Result:
        """Verify and sample."""
        self.spend("prepare")
        verify_batch = SimpleNamespace(forward_mode=ForwardMode.TARGET_VERIFY)
        self.target_worker.model_runner.forward(forward_batch=verify_batch)
        self.spend("sampling")
        lengths = Lengths([drafts + 1 for drafts in self.accepts(batch)])
        return Result(lengths, speculative_num_draft_tokens=self.speculative_num_draft_tokens)


class Results:
    """SchedulerBatchResultProcessor of 0.5.23 in outline: it takes no attributes of its own."""

    __slots__ = ()

    def _resolve_spec_v2_tokens(self, result: Result, batch: Batch) -> list[int]:
        assert result.accept_lens is not None
        result.num_correct_drafts_per_req_cpu = [length - 1 for length in result.accept_lens]
        return [7]


@dataclass
class Scheduler:
    """A scheduler between two event loops."""

    tp_worker: Any
    draft_worker: Any
    batch_result_processor: Any
    enable_overlap: bool = False
    tp_rank: int = 0
    pp_rank: int = 0
    last_batch: Any = None
    errors: list[str] = field(default_factory=list)

    def run(self, batch: Batch) -> Any:
        """Run one batch to its end, as the event loop without overlap does."""
        result = self.draft_worker.forward_batch_generation(batch, on_publish=None)
        if batch.forward_mode is ForwardMode.DECODE:
            self.batch_result_processor._resolve_spec_v2_tokens(result, batch)
        self.last_batch = batch
        return result


def engine(spend: Pass = lambda name: None, device: str = "cpu", **worker: Any) -> Scheduler:
    """Return the scheduler of an engine with EAGLE, laid out like 0.5.23."""
    target = SimpleNamespace(model_runner=Runner(spend, device))
    # One class of its own per engine: the probe patches the class of the results.
    results = type("SchedulerBatchResultProcessor", (Results,), {"__slots__": ()})
    return Scheduler(target, Worker(spend, target, Drafter(spend), **worker), results())
