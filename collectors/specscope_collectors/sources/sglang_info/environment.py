"""Which environment variables of the engine are kept (0.5.23 gives them on request)."""

from __future__ import annotations

from typing import Any

PREFIXES = (
    "NCCL_", "SGLANG_", "SGL_", "CUDA_", "NVSHMEM_", "GLOO_", "TORCH_", "PYTORCH_", "OMP_", "FLASHINFER_",
    "TRITON_", "HIP_", "HSA_", "RCCL_", "UCX_", "MC_",
)  # fmt: skip
MAX_CHARACTERS = 500


def chosen(variables: dict[str, Any]) -> dict[str, str]:
    """Return the variables that bear on speed, sorted; secrets in them are already redacted."""
    return {
        name: str(value)[:MAX_CHARACTERS]
        for name, value in sorted(variables.items())
        if name.startswith(PREFIXES) and value is not None
    }
