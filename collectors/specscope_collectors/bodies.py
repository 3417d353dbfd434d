"""Reading a response body within a limit of decoded bytes, so that a compression bomb is harmless."""

from __future__ import annotations

import zlib

import httpx

TOO_LARGE_REMEDY = "raise SPECSCOPE_MAX_BODY_BYTES if an answer of this size is really meant"
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class BodyError(Exception):
    """The body cannot be read; the message says why."""


class TooLargeError(BodyError):
    """The decoded body is larger than allowed."""

    def __init__(self, message: str, seen_bytes: int) -> None:
        super().__init__(message)
        self.seen_bytes = seen_bytes


async def read_bounded(response: httpx.Response, limit_bytes: int) -> bytes:
    """Return the decoded body; raises `TooLargeError` once it must exceed ``limit_bytes``, or `BodyError`."""
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:18]) > limit_bytes:
        raise TooLargeError(
            f"the answer says it has {declared[:18]} bytes, allowed are {limit_bytes}", int(declared[:18])
        )
    decoder = _decoder(response.headers.get("content-encoding", "identity"))
    chunks: list[bytes] = []
    size = 0
    async for raw in response.aiter_raw():
        chunk = decoder.decode(raw, limit_bytes - size + 1)
        size += len(chunk)
        if size > limit_bytes:
            raise TooLargeError(f"the answer has more than the allowed {limit_bytes} bytes", size)
        chunks.append(chunk)
    decoder.finish()
    return b"".join(chunks)


class _Identity:
    def decode(self, raw: bytes, limit_bytes: int) -> bytes:
        return raw

    def finish(self) -> None:
        """Nothing is kept back."""


class _Inflate(_Identity):
    """gzip and zlib; never produces more than asked for, however small its input."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)

    def decode(self, raw: bytes, limit_bytes: int) -> bytes:
        try:
            return self._inflate.decompress(raw, limit_bytes)
        except zlib.error as error:
            raise BodyError(f"its compression is damaged ({error})") from error

    def finish(self) -> None:
        if not self._inflate.eof:
            raise BodyError("the compressed answer ends in the middle")


def _decoder(encoding: str) -> _Identity:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Identity()
    if name in ("gzip", "x-gzip", "deflate"):
        return _Inflate()
    raise BodyError(f"the answer is encoded as {name[:40]!r}, which was not asked for")
