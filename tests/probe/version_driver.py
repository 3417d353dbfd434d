"""Run by `each_version.py` with a real SGLang of some version: its own worker classes, without a model.

The control flow is the engine's (event loop, worker, target worker, resolving of results); what would need
kernels or weights (drafting, the target's forward, sampling) is a stand-in.
"""

from __future__ import annotations

import contextlib
import importlib
from types import SimpleNamespace
from typing import Any


def let_configurations_register_again() -> None:
    """The rig's transformers is newer than old engines: it knows models that they bring themselves."""
    from transformers import AutoConfig

    register = AutoConfig.register
    AutoConfig.register = staticmethod(lambda name, kind, exist_ok=False: register(name, kind, exist_ok=True))


let_configurations_register_again()

import torch  # noqa: E402
from sglang.srt.managers import scheduler as scheduler_module  # noqa: E402
from sglang.srt.managers import tp_worker as tp_worker_module  # noqa: E402
from sglang.srt.managers.tp_worker import TpModelWorker  # noqa: E402
from sglang.srt.managers.utils import GenerationBatchResult  # noqa: E402
from sglang.srt.model_executor.forward_batch_info import ForwardMode  # noqa: E402

ACCEPTED = [0, 2, 3]
STEPS = 3


class Quiet(SimpleNamespace):
    """Answers None for whatever the engine asks of it besides."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Runner:
    """The target's model runner."""

    device = "cpu"
    hybrid_gdn_config = mamba2_config = None

    def forward(self, forward_batch: Any, pp_proxy_tensors: Any = None, **_: Any) -> Any:
        """Return outputs in the engine's form."""
        logits = Quiet(next_token_logits=torch.zeros(12, 4), hidden_states=torch.zeros(12, 8))
        return Quiet(logits_output=logits, can_run_graph=False)

    def sample(self, *_: Any) -> Any:
        """Return one token per request."""
        return torch.zeros(len(ACCEPTED), dtype=torch.long)


tp_worker_module.ForwardBatch = SimpleNamespace(init_new=lambda batch, *_, **__: batch.forward_batch)


class Target(TpModelWorker):
    """The engine's own target worker over that runner."""

    model_runner = Runner()

    def __init__(self) -> None:
        self.pp_group = SimpleNamespace(is_last_rank=True)
        self.enable_overlap = False
        self.enable_spec = True

    def is_dllm(self) -> bool:
        return False

    def set_hicache_consumer(self, _: Any) -> None: ...


def request(rid: str) -> Any:
    """Return a request of which the engine resolves results."""
    return Quiet(
        rid=rid, finished=lambda: False, is_retracted=False, kv_committed_len=0, spec_verify_ct=0,
        spec_accepted_tokens=0, spec_num_correct_drafts=0, kv=Quiet(kv_committed_len=0),
        update_spec_correct_drafts_histogram=lambda _: None,
    )  # fmt: skip


def batch_of(mode: Any) -> Any:
    """Return a batch of three requests."""
    forward_batch = Quiet(
        forward_mode=ForwardMode.TARGET_VERIFY, apply_deprecated_skip_attn_backend_init=lambda _: None
    )
    worker_batch = Quiet(capture_hidden_mode=None, forward_batch=forward_batch)
    verify_input = Quiet(
        is_verify_input=lambda: True,
        prepare_for_verify=lambda *_: None,
        verify=lambda *_: Quiet(
            accepted_indices=torch.zeros(1, dtype=torch.long),
            accept_length_per_req_cpu=list(ACCEPTED),
            draft_input=Quiet(verified_id=torch.zeros(3)),
            verified_id=torch.zeros(3),
        ),
    )
    return Quiet(
        reqs=[request("a"), request("HEALTH_CHECK_1"), request("b")],
        forward_mode=mode, is_extend_in_batch=False, has_grammar=False,
        spec_info=Quiet(is_verify_input=lambda: False),
        seq_lens=torch.tensor([4, 5, 6]), forward_batch=forward_batch, verify_input=verify_input,
        get_model_worker_batch=lambda **_: worker_batch, worker_batch=worker_batch,
    )  # fmt: skip


def standing_in(real: type, **methods: Any) -> Any:
    """Return an instance of the engine's class with its leaves replaced; nothing of it was initialised."""
    leaves = {name: method for name, method in methods.items() if hasattr(real, name)}
    made = type(real.__name__, (real,), {"__init__": lambda self: None, **leaves})()
    for name, value in methods.items():
        if name not in leaves:
            with contextlib.suppress(AttributeError):
                setattr(made, name, value)
    return made


COMMON = {
    "device": "cpu", "topk": 1, "page_size": 1, "speculative_num_steps": STEPS,
    "speculative_num_draft_tokens": STEPS + 1, "enable_dp_spec_prefill_coordination": False,
    "enable_nan_detection": False, "adaptive_controller": None,
    "activate_step_by_batch": lambda self, _: None, "server_args": Quiet(),
}  # fmt: skip


def v2_worker(target: Any) -> Any:
    """Return EAGLEWorkerV2 of this version."""
    module = importlib.import_module("sglang.srt.speculative.eagle_worker_v2")
    without_contexts(module)
    drafter = standing_in(
        module.EagleDraftWorker,
        draft=lambda self, batch, **_: batch.verify_input,
        _draft_extend_for_decode=lambda self, *_, **__: None,
        _draft_extend_for_prefill=lambda self, *_, **__: Quiet(),
        draft_tp_context=contextlib.nullcontext,
        draft_runner=Quiet(),
        parallel_layout=None,
    )

    def verify(self: Any, batch: Any, **_: Any) -> Any:
        given = "model_worker_batch" if takes_worker_batch() else "batch"
        out = target.forward_batch_generation(
            **{given: None}, forward_batch=batch.forward_batch, is_verify=True
        )
        lengths = torch.tensor([drafts + 1 for drafts in ACCEPTED])
        more = {"speculative_num_draft_tokens": STEPS + 1} if not takes_worker_batch() else {}
        tokens = torch.zeros(len(ACCEPTED) * (STEPS + 1), dtype=torch.long)
        return GenerationBatchResult(
            logits_output=out.logits_output, next_token_ids=tokens, accept_lens=lengths, **more
        )

    worker = standing_in(module.EAGLEWorkerV2, verify=verify, **COMMON)
    worker.__dict__.update(_draft_worker=drafter, _target_worker=target)
    return worker


def v1_worker(target: Any) -> Any:
    """Return EAGLEWorker with its own verify."""
    module = importlib.import_module("sglang.srt.speculative.eagle_worker")
    without_contexts(module)
    worker = standing_in(
        module.EAGLEWorker,
        draft=lambda self, batch: batch.verify_input,
        forward_draft_extend_after_decode=lambda self, batch: None,
        forward_draft_extend=lambda self, *_: None,
        draft_tp_context=contextlib.nullcontext,
        target_worker=target,
        token_to_kv_pool_allocator=None,
        draft_model_runner=Quiet(),
        **{name: value for name, value in COMMON.items() if name != "activate_step_by_batch"},
    )
    worker.__dict__["_model_runner"] = Quiet()
    return worker


def without_contexts(module: Any) -> None:
    """Make the engine's contexts of parallel groups, which there are none of, do nothing."""
    if hasattr(module, "get_parallel"):
        module.get_parallel = lambda: Quiet(pp_size=1)
    for name in vars(module).copy():
        if name.endswith("_context"):
            setattr(module, name, lambda *_, **__: contextlib.nullcontext())


def takes_worker_batch() -> bool:
    """Say whether this version's target worker is given the older kind of batch."""
    return "model_worker_batch" in TpModelWorker.forward_batch_generation.__code__.co_varnames


class LoopEndedError(Exception):
    """The event loop asked for requests: the probe is attached by then."""


def scheduler_with(worker: Any, target: Any) -> Any:
    """Return a scheduler of the engine's class, and let the probe attach by starting its event loop."""
    made = object.__new__(scheduler_module.Scheduler)

    def end(*_: Any, **__: Any) -> Any:
        raise LoopEndedError

    made.__dict__.update(
        tp_worker=target, draft_worker=worker, enable_overlap=False, tp_rank=0, pp_rank=0, last_batch=None,
        recv_requests=end, ingest_requests=end, request_receiver=Quiet(recv_requests=end),
        gracefully_exit=False,
    )  # fmt: skip
    processor = results_class()
    if processor is not None:
        component = object.__new__(processor)
        object.__setattr__(component, "model_worker", worker)
        with contextlib.suppress(AttributeError):
            reporter = Quiet(snapshot_spec_decode_metrics=lambda *_: None)
            object.__setattr__(component, "metrics_reporter", reporter)
        made.__dict__["batch_result_processor"] = component
    with contextlib.suppress(LoopEndedError):
        made.event_loop_normal()
    return made


def results_class() -> Any:
    """Return the component that resolves results, where there is one."""
    with contextlib.suppress(ImportError):
        name = "sglang.srt.managers.scheduler_components.batch_result_processor"
        return importlib.import_module(name).SchedulerBatchResultProcessor
    return None


def resolve(scheduler: Any, result: Any, batch: Any) -> None:
    """Let the engine turn the result into tokens."""
    component = vars(scheduler).get("batch_result_processor")
    if component is not None:
        result.grammar_advanced = True
        component._resolve_spec_v2_tokens(result, batch)
    else:
        scheduler._resolve_spec_overlap_token_ids(result, batch)


def watch(kind: str) -> dict[str, Any]:
    """Return what the probe saw of a few cycles of one worker class."""
    from specscope_probe import install

    target = Target()
    worker = v2_worker(target) if kind == "v2" else v1_worker(target)
    scheduler = scheduler_with(worker, target)
    probe = install.attach(scheduler)
    results = []
    for _ in range(5):
        batch = batch_of(ForwardMode.DECODE)
        results.append(worker.forward_batch_generation(batch))
        if kind == "v2":
            resolve(scheduler, results[-1], batch)
        scheduler.last_batch = batch
    seen = describe(probe)
    probe.remove("the test is over")
    unwrapped = [name for name in ("draft", "verify", "forward_batch_generation") if name in vars(worker)]
    return seen | {"left_behind": unwrapped, "results": len(results)}


def describe(probe: Any) -> dict[str, Any]:
    """Return a probe's seams, parts and sums."""
    from specscope_probe.phases import PHASES

    sums = {
        shape.kind: {"cycles": sums.cycles, **dict(zip(PHASES[shape.kind], sums.phases, strict=True))}
        for shape, sums in probe.timer.tally.sums.items()
    }
    return {
        "seams": {
            name: f"{found.owner.__name__ if isinstance(found.owner, type) else type(found.owner).__name__}"
            f".{found.attribute}"
            for name, found in probe.found.items()
        },
        "missing": probe.missing,
        "parts": {part.name: [part.state, part.reason, part.errors] for part in probe.parts},
        "sums": sums,
        "worker_view": probe.counter.worker_view.by_accepted[: STEPS + 1],
        "request_view": probe.counter.request_view.by_accepted[: STEPS + 1],
        "depths": probe.counter.request_view.by_depth[: STEPS + 1],
    }


def main(kinds: list[str]) -> dict[str, Any]:
    """Install the probe as an engine would and watch."""
    from specscope_probe import loading

    loading.forward_hook({})
    loading.forward_hook({})
    real = scheduler_module.Scheduler
    loops = [name for name in dir(real) if name.startswith("event_loop_")]
    wrapped = [name for name in loops if hasattr(getattr(real, name), "_specscope_probe")]
    return {"loops": loops, "wrapped": wrapped, **{kind: watch(kind) for kind in kinds}}
