"""Saved models taken apart, and signed again after a change."""

import hashlib
import json

from braided.state import CHECKSUM_SIZE, MAGIC


def parts_of(data):
    """The header of a file and the bytes of its arrays."""
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(data[len(MAGIC) : start], "little")
    return json.loads(data[start:stop]), bytearray(data[stop:-CHECKSUM_SIZE])


def signed(header, arrays):
    """A file with a checksum that fits; the header as text, or as what its JSON says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = MAGIC + len(text).to_bytes(8, "little") + text + bytes(arrays)
    return content + hashlib.sha256(content).digest()
