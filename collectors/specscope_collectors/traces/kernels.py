"""Kernel names → classes. Names nobody knows are "other" and are listed, never guessed."""

from __future__ import annotations

import re
from enum import StrEnum


class KernelClass(StrEnum):
    """What a kernel is for."""

    ALL_REDUCE = "all_reduce"
    COLLECTIVE = "collective"
    """All-gather, reduce-scatter, broadcast, send and receive, dispatch and combine of experts."""
    FUSED_ALL_REDUCE = "fused_all_reduce"
    """All-reduce and what is fused to it (add, RMSNorm): its two parts cannot be separated."""
    ATTENTION = "attention"
    GEMM = "gemm"
    """Matrix products, experts included."""
    NORM = "norm"
    """Norms, activations, rotary embedding, quantisation, element by element."""
    SAMPLING = "sampling"
    """Sampling, and building and verifying the tree of drafts."""
    COPY = "copy"
    OTHER = "other"


COMMUNICATION = (KernelClass.ALL_REDUCE, KernelClass.COLLECTIVE)

_RULES: tuple[tuple[KernelClass, str], ...] = (
    # Fused first: their names hold both words.
    (KernelClass.FUSED_ALL_REDUCE,
     r"all_?reduce.*(?:fus|rms|norm)|(?:fus|rms|norm|moe_?finalize).*all_?reduce|lamport"),
    (KernelClass.ALL_REDUCE,
     r"nccl\w*allreduce|rccl\w*allreduce|cross_device_reduce|all_?reduce|multimem_all|multimem_red"
     r"|two_?shot|one_?shot|quick_?reduce"),
    (KernelClass.COLLECTIVE,
     r"nccl|rccl|all_?gather|reduce_?scatter|all_?to_?all|broadcast_kernel_(?:push|pull)|mscclpp"
     r"|deep_?ep|internode|intranode|(?:^|[^a-z])(?:dispatch|combine|notify_dispatch)(?:[^a-z]|$)|nvshmem"),
    (KernelClass.ATTENTION,
     r"flash_?(?:attn|fwd|attention|infer\w*attention)|fmha|attention|attn|mla(?:[^a-z]|$)|paged_?kv"
     r"|batch_?(?:prefill|decode)_?with|batchprefill|batchdecode|mergestate|merge_state|xqa|kv_?indices"
     r"|_fwd_kernel|_fwd_grouped"),
    (KernelClass.SAMPLING,
     r"top_?k_?(?:top_?p|renorm|mask)|top_?p_?(?:sampling|renorm)|sampling|multinomial|argmax|verify_?tree"
     r"|build_?tree|tree_?spec|reconstruct_?indices|eagle|spec_?(?:sample|verify)|radix_?sort|bitonic|gathertopk"
     r"|sbtopk|mbtopk|softmax.*(?:sampl|logit)|chain_?speculative"),
    (KernelClass.GEMM,
     r"gemm|gemv|cutlass|cublas|xmma|nvjet|wgmma|matmul|splitk|moe|expert|marlin|machete|ampere_\w*_s\d+"
     r"|hopper_\w*_tn|deep_?gemm|grouped_?mm|topkgating|grouped_?topk|align_block"),
    (KernelClass.NORM,
     r"norm|elementwise|silu|gelu|swiglu|act_and_mul|rope|rotary|quant|vectorized|triton_(?:poi|per|red)"
     r"|softmax|reduce_kernel|copy_kernel|fill|scatter|gather|index|embedding|cumsum|scan|cat(?:array|_)"
     r"|distribution_elementwise|unrolled|arange|where|compare|cast"),
    (KernelClass.COPY, r"memcpy|memset"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _RULES)
_LONG = 400


def kernel_class(name: str) -> KernelClass:
    """Return what a kernel is for, by its name."""
    text = name[:_LONG]
    return next((kind for kind, pattern in _COMPILED if pattern.search(text)), KernelClass.OTHER)
