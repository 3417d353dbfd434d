"""An empty torchvision: the published one is a CUDA build that cannot load beside a CPU torch, and SGLang imports it."""

from torchvision import io, transforms

__version__ = "0.0.0"
__all__ = ["io", "transforms"]
