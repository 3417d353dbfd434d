"""Names that SGLang and transformers import."""

import enum


class InterpolationMode(enum.Enum):
    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class Transform:
    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        raise NotImplementedError("the rig has no torchvision")


Compose = Resize = ToTensor = Normalize = Lambda = ToPILImage = CenterCrop = Transform

from torchvision.transforms import functional  # noqa: E402, F401
