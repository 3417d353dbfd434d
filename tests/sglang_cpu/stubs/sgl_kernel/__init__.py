"""A stand-in for SGLang's compiled kernels, in plain torch: what a Llama with EAGLE-3 needs on a CPU.

The published kernels are CUDA builds. Names and signatures are those that SGLang 0.5.23 calls; any other name can be
imported and raises when it is called, so that a missing one is seen by name. Slow: no time measured here means anything.
"""

import torch

from sgl_kernel import _operators  # noqa: F401  (registers torch.ops.sgl_kernel)
from sgl_kernel._absent import absent_attribute, serve_absent_submodules
from sgl_kernel._cache import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    copy_all_layer_kv_cache_cpu,
    fill_accept_out_cache_loc_cpu,
    fill_bonus_tokens_cpu,
)
from sgl_kernel._sampling import (
    fast_topk,
    top_k_renorm_prob,
    top_p_renorm_prob,
    tree_speculative_sampling_target_only,
)
from sgl_kernel._timing import HostEvent
from sgl_kernel._tree import (
    build_tree_kernel_efficient_cpu,
    reconstruct_indices_from_tree_mask,
    verify_tree_greedy_cpu,
)

__version__ = "0.0.0+standin"
__all__ = [
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fast_topk",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "reconstruct_indices_from_tree_mask",
    "top_k_renorm_prob",
    "top_k_renorm_probs",
    "top_p_renorm_prob",
    "top_p_renorm_probs",
    "tree_speculative_sampling_target_only",
    "verify_tree_greedy_cpu",
]

top_k_renorm_probs = top_k_renorm_prob
top_p_renorm_probs = top_p_renorm_prob

torch.cpu.Event = HostEvent
serve_absent_submodules(__name__, globals())


def __getattr__(name):
    return absent_attribute(__name__, name)
