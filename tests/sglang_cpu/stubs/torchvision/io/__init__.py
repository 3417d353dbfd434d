"""Names that SGLang and transformers import."""

import enum


class ImageReadMode(enum.Enum):
    UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)


def decode_image(*args, **kwargs):
    raise NotImplementedError("the rig has no torchvision")


decode_jpeg = read_image = read_video = decode_image
