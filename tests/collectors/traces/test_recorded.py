"""A trace that a real engine wrote, names of files and of kernels of the engine's versions."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from specscope_collectors.traces.accounts import unpacked
from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.kernels import KernelClass, kernel_class
from specscope_collectors.traces.names import (
    merged_label,
    rank_of_file,
    rank_of_header,
    rank_of_label,
    stage_of_file,
    start_of_file,
)
from specscope_collectors.traces.notes import CPU_ONLY
from specscope_collectors.traces.opening import captures
from specscope_collectors.traces.phases import Mark, batch_size_of, mark_of
from specscope_collectors.traces.printing import as_document, as_lines
from specscope_collectors.traces.reading import read_file
from specscope_collectors.traces.summary import summarise

RECORDED = Path(__file__).parent / "fixtures" / "1795986432.4661407-TP-0.trace.json.gz"
NAMED = {
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": KernelClass.ALL_REDUCE,
    "ncclKernel_AllReduce_RING_LL_Sum_bf16(ncclWorkElem)": KernelClass.ALL_REDUCE,
    "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(sglang::RankData*)": KernelClass.ALL_REDUCE,
    "void sglang::cross_device_reduce_2stage<__half, 4>(sglang::RankData*)": KernelClass.ALL_REDUCE,
    "all_reduce_1shot_push_kernel": KernelClass.ALL_REDUCE,
    "multimem_all_reduce_kernel": KernelClass.ALL_REDUCE,
    "two_shot_all_reduce_kernel": KernelClass.ALL_REDUCE,
    "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_lamport": KernelClass.FUSED_ALL_REDUCE,
    "moe_finalize_all_reduce_kernel": KernelClass.FUSED_ALL_REDUCE,
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": KernelClass.COLLECTIVE,
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL": KernelClass.COLLECTIVE,
    "ncclDevKernel_Broadcast_RING_LL": KernelClass.COLLECTIVE,
    "ncclDevKernel_SendRecv": KernelClass.COLLECTIVE,
    "void deep_ep::intranode::dispatch<8, 768>": KernelClass.COLLECTIVE,
    "void deep_ep::internode_ll::combine<true, 3, 7168, 8>": KernelClass.COLLECTIVE,
    "nvjet_tst_128x64_64x9_2x1_v_bz_TNT": KernelClass.GEMM,
    "fused_moe_kernel": KernelClass.GEMM,
    "deep_gemm::fp8_gemm_kernel<4096u, 7168u>": KernelClass.GEMM,
    "void moe_align_block_size_kernel<int>": KernelClass.GEMM,
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>": KernelClass.ATTENTION,
    "void flashinfer::BatchPrefillWithPagedKVCacheKernel<...>": KernelClass.ATTENTION,
    "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvDenseP32": KernelClass.ATTENTION,
    "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>": KernelClass.NORM,
    "void act_and_mul_kernel<__nv_bfloat16, silu>": KernelClass.NORM,
    "void at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>": KernelClass.NORM,
    "void TreeSpeculativeSamplingTargetOnly<...>": KernelClass.SAMPLING,
    "build_tree_efficient(long*, long*)": KernelClass.SAMPLING,
    "VerifyTreeGreedy<int, int>": KernelClass.SAMPLING,
    "void at::native::reduce_kernel<512, 1, ArgMaxOps<float>>": KernelClass.SAMPLING,
    "Memcpy DtoD (Device -> Device)": KernelClass.COPY,
    "Memset (Device)": KernelClass.COPY,
    "my_very_own_thing": KernelClass.OTHER,
}


def test_a_recorded_trace_holds_the_steps_that_were_run() -> None:
    with RECORDED.open("rb") as stream:
        found = read_file(stream, RECORDED.name, Bounds())
    summary = summarise([found], "recorded", 0)
    [rank] = summary.ranks
    assert rank.labels == {"tp_rank": "0"}
    assert rank.ranges == {"draft": 14, "verify": 14, "draft_extend": 17, "prefill": 3}
    assert (rank.cycles, rank.basis, found.file.trouble) == (14, "cpu_ranges", "")
    counts = {phase.phase: phase.count for phase in rank.phases}
    assert counts == {
        "draft": 14, "verify": 14, "sampling": 14, "draft_extend": 14, "prefill": 3,
        "prefill_draft_extend": 3, "cycle": 11, "unattributed": 11,
    }  # fmt: skip
    assert CPU_ONLY in summary.notes
    assert summary.time_ms == 1_795_986_432_505  # the name says 432,466: when it was asked for
    verify = next(phase for phase in rank.phases if phase.phase == "verify")
    assert unpacked(verify.wall_ms)[0] == pytest.approx(27.474774)
    assert verify.batch_sizes == {1: 14}


def test_it_can_be_printed_for_people_and_scripts() -> None:
    with RECORDED.open("rb") as stream:
        summary = summarise([read_file(stream, RECORDED.name, Bounds())], "a\x1b[31mname", 0)
    text = "\n".join(as_lines(summary))
    assert "TP0: 14 cycles, phases from cpu_ranges" in text
    assert "\x1b" not in text
    phases = {phase["phase"]: phase for phase in as_document(summary)["ranks"][0]["phases"]}
    assert phases["draft"]["median_ms"] == pytest.approx(14.222, abs=0.001)


@pytest.mark.parametrize(("name", "kind"), NAMED.items())
def test_kernels_are_known_by_name(name: str, kind: KernelClass) -> None:
    assert kernel_class(name) is kind


@pytest.mark.parametrize(
    ("name", "labels", "stage"),
    [
        ("1795986432.4661407-TP-0.trace.json.gz", {"tp_rank": "0"}, ""),
        ("p-1795986432.4-TP-3-DP-1-DECODE.trace.json.gz", {"tp_rank": "3", "dp_rank": "1"}, "decode"),
        (
            "1-TP-3-PP-1-EP-2-EXTEND.trace.json.gz",
            {"tp_rank": "3", "pp_rank": "1", "moe_ep_rank": "2"},
            "extend",
        ),
        ("1-TP-12-prefill.trace.json.gz", {"tp_rank": "12"}, "extend"),
        ("trace.json", {}, ""),
        ("STEP-1.json", {}, ""),
    ],
)
def test_names_of_files_say_the_rank(name: str, labels: dict[str, str], stage: str) -> None:
    assert rank_of_file(name) == labels
    assert stage_of_file(name) == stage


def test_other_places_that_say_the_rank() -> None:
    assert start_of_file("1795986432.4661407-TP-0.trace.json.gz") == 1_795_986_432_466
    assert start_of_file("abc-TP-0.trace.json.gz") is None
    assert merged_label("[TP00-DP01] 6706") == "TP00-DP01"
    assert merged_label("6706") == merged_label(6706) == ""
    assert rank_of_label("TP03-DP01") == {"tp_rank": "3", "dp_rank": "1"}
    assert rank_of_header({"distributedInfo": {"rank": 3, "world_size": 8}}) == {"rank": "3"}
    assert rank_of_header({"distributedInfo": {"rank": 0, "world_size": 1}}) == {}
    assert rank_of_header({"distributedInfo": "?"}) == {}


def test_names_of_ranges() -> None:
    assert mark_of("step[TARGET_VERIFY bs=3]") is mark_of("step[VERIFY bs=3]") is Mark.STEP_VERIFY
    assert mark_of("step[EXTEND bs=1 toks=10]") is Mark.STEP_EXTEND
    assert mark_of("step[IDLE bs=0]") is None
    assert mark_of("drafting") is None
    assert batch_size_of("step[VERIFY bs=3]") == 3
    assert batch_size_of("draft") == 0


def test_steps_within_a_phase_of_the_probe_are_not_taken_for_the_whole_phase() -> None:
    events = [
        ("specscope.draft", 0, 100), ("step[DRAFT bs=2]", 10, 20), ("step[DRAFT bs=2]", 40, 20),
        ("specscope.verify", 200, 500), ("specscope.target", 210, 400), ("step[VERIFY bs=2]", 220, 380),
        ("draft_extend", 800, 90), ("specscope.draft_extend", 805, 80),
    ]  # fmt: skip
    rows = [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length}
        for name, start, length in events
    ]
    text = json.dumps({"traceEvents": rows}).encode()
    [rank] = summarise([read_file(io.BytesIO(text), "a.json", Bounds())], "a", 0).ranks
    walls = {each.phase: list(unpacked(each.wall_ms)) for each in rank.phases}
    assert walls["draft"] == pytest.approx([0.1])
    assert walls["verify"] == pytest.approx([0.38])
    assert walls["sampling"] == pytest.approx([0.1])
    assert walls["draft_extend"] == pytest.approx([0.09])
    assert rank.ranges == {"draft": 1, "verify": 1, "draft_extend": 1}


def test_files_are_grouped_into_captures(tmp_path: Path) -> None:
    names = [
        "1.5-TP-0.trace.json.gz", "1.5-TP-1.trace.json.gz", "merged-1.5.trace.json.gz",
        "2.5-TP-0-EXTEND.trace.json.gz", "2.5-TP-0-DECODE.trace.json.gz",
        "merged-9.trace.json.gz", "notes.txt",
    ]  # fmt: skip
    for name in names:
        (tmp_path / name).write_bytes(b"")
    found = {each.name: [path.name for path in each.paths] for each in captures([tmp_path])}
    assert found == {
        "1.5": names[:2], "2.5 extend": [names[3]], "2.5 decode": [names[4]],
        "merged-9": [names[5]],
    }  # fmt: skip
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="holds no"):
        captures([tmp_path / "empty"])
