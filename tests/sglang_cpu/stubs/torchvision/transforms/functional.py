"""Every function exists and raises when called."""

from torchvision.transforms import InterpolationMode  # noqa: F401


def absent(*args, **kwargs):
    raise NotImplementedError("the rig has no torchvision")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return absent
