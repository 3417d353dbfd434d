"""From a pushed body to batches: unpacked within a limit, and decoded one by one."""

from __future__ import annotations

import io
import zlib

import msgspec
import zstandard

from specscope_collectors.observations import Batch
from specscope_server.kit.errors import InvalidInput, TooLarge, UnsupportedMedia

MSGPACK_TYPES = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})
MSGPACK, JSON, NDJSON = "application/msgpack", "application/json", "application/x-ndjson"
ENCODINGS = "zstd, gzip"
MOST_BATCHES = 10_000
_STEP_BYTES = 1_048_576
_MAX_WINDOW_BYTES = 8 * _STEP_BYTES
"""RFC 9659: what every reader of zstd over HTTP must accept, and none needs to exceed."""
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

_raw_msgpack, _raw_json = msgspec.msgpack.Decoder(list[msgspec.Raw]), msgspec.json.Decoder(list[msgspec.Raw])
_of_msgpack, _of_json = msgspec.msgpack.Decoder(Batch), msgspec.json.Decoder(Batch)


class Batches:
    """The batches of one body, decoded when asked for, so that a bad one can be named."""

    def __init__(self, content: bytes, media: str) -> None:
        """Find where each begins. Raises `InvalidInput`, `UnsupportedMedia`."""
        self._decode = _of_msgpack.decode if media in MSGPACK_TYPES else _of_json.decode
        self._parts = _parts(content, media)
        if not 0 < len(self._parts) <= MOST_BATCHES:
            raise InvalidInput(f"the body has {len(self._parts)} batches; send 1 to {MOST_BATCHES}")

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._parts)

    def decode(self, place: int) -> Batch:
        """Return one batch. Raises `InvalidInput` that names its place."""
        try:
            return self._decode(self._parts[place])
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            location, reason = f"batches.{place}", f"it is no batch: {error}"
            item = {"location": location, "reason": reason, "input": f"{len(self._parts[place])} bytes"}
            raise InvalidInput(f"{location}: {reason}", [item]) from None


def _parts(content: bytes, media: str) -> list[msgspec.Raw]:
    try:
        if media in MSGPACK_TYPES:
            is_one = content[:1] >= b"\xde" or b"\x80" <= content[:1] <= b"\x8f"
            return [msgspec.Raw(content)] if is_one else _raw_msgpack.decode(content)
        if media == NDJSON:
            return [msgspec.Raw(line) for line in content.split(b"\n") if line.strip()]
        if media == JSON:
            is_one = content.lstrip()[:1] == b"{"
            return [msgspec.Raw(content)] if is_one else _raw_json.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"the body is no list of batches: {error}; it may have been cut") from None
    raise UnsupportedMedia(
        f"Content-Type {media[:60]!r} is not read here; send {MSGPACK}, {JSON} or {NDJSON} (one batch a line)"
    )


def unpack(raw: bytes, encoding: str, limit: int) -> bytes:
    """Return the decoded body. Raises `TooLarge`, `InvalidInput`, `UnsupportedMedia`.

    Never more than a step over the limit is unpacked, however small the input.
    """
    if encoding in ("", "identity"):
        content = raw
    elif encoding == "zstd":
        content = _unzstd(raw, limit)
    elif encoding in ("gzip", "x-gzip"):
        content = _ungzip(raw, limit)
    else:
        raise UnsupportedMedia(
            f"Content-Encoding {encoding[:40]!r} is not read here; send {ENCODINGS} or none"
        )
    if len(content) > limit:
        raise too_large(limit)
    return content


def too_large(limit: int) -> TooLarge:
    """Return the error of a body that is too large."""
    return TooLarge(
        f"the body is over max_push_bytes={limit}, unpacked; send fewer batches or raise the setting"
    )


def _unzstd(raw: bytes, limit: int) -> bytes:
    """Unpack one frame or several, one after the other."""
    content = bytearray()
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    try:
        with decompressor.stream_reader(io.BytesIO(raw), read_across_frames=True) as reader:
            while len(content) <= limit and (part := reader.read(_STEP_BYTES)):
                content += part
    except zstandard.ZstdError as error:
        raise InvalidInput(f"the body is not zstd although Content-Encoding says so: {error}") from None
    return bytes(content)


def _ungzip(raw: bytes, limit: int) -> bytes:
    """Unpack one member or several."""
    content, pending = bytearray(), raw
    unzip = zlib.decompressobj(_GZIP_WINDOW)
    try:
        while pending and len(content) <= limit:
            if unzip.eof:
                unzip = zlib.decompressobj(_GZIP_WINDOW)
            content += unzip.decompress(pending, _STEP_BYTES)
            pending = unzip.unconsumed_tail or unzip.unused_data
    except zlib.error as error:
        raise InvalidInput(f"the body is not gzip although Content-Encoding says so: {error}") from None
    if len(content) <= limit and not unzip.eof:
        raise InvalidInput("the gzip body ends too early; send it whole")
    return bytes(content)
