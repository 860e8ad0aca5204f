"""The files that the trainer and the reference share: safetensors, a Hugging Face Llama's folder, a PEFT
adapter's, a shard of tokens. Written from the formats' descriptions, with numpy alone; what is not
understood is refused and never guessed."""

import json
import math
import struct
from pathlib import Path

import numpy as np

MAX_HEADER_BYTES = 100_000_000
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": None}
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
TOKEN_MAGIC = b"EZPZTOK1"
TOKEN_HEADER = struct.Struct("<8sIIQQ32s")


class Refused(ValueError):
    """A file that is not what it should be."""


def parse_json(text, where):
    """An object without repeated keys."""

    def pairs(items):
        if len({key for key, _ in items}) != len(items):
            raise Refused(f"{where}: a key stands there twice")
        return dict(items)

    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refused(f"{where}: {error}") from error
    if not isinstance(value, dict):
        raise Refused(f"{where}: not a JSON object")
    return value


# ---- safetensors: eight bytes of header length, a JSON header, the tensors' bytes without holes


def read_safetensors(path):
    """Every tensor of a file, name to array; BF16 as float32."""
    content = Path(path).read_bytes()
    if len(content) < 8:
        raise Refused(f"{path}: too short for a header")
    (length,) = struct.unpack_from("<Q", content)
    if length > min(MAX_HEADER_BYTES, len(content) - 8):
        raise Refused(f"{path}: a header of {length} bytes in a file of {len(content)}")
    header = parse_json(content[8 : 8 + length], path)
    header.pop("__metadata__", None)
    data = memoryview(content)[8 + length :]
    entries = [(*_entry(name, entry, path), name) for name, entry in header.items()]
    expected = 0
    for begin, end, _, _, name in sorted(entries, key=lambda entry: entry[:2]):
        if begin != expected:
            raise Refused(f"{path}: {name} begins at byte {begin}, the one before ends at {expected}")
        expected = end
    if expected != len(data):
        raise Refused(f"{path}: the tensors end at byte {expected}, the file at {len(data)}")
    return {name: _values(data[begin:end], kind).reshape(shape) for begin, end, kind, shape, name in entries}


def _entry(name, entry, path):
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise Refused(f"{path}: {name} is not described as a tensor")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in FLOATS:
        raise Refused(f"{path}: {name} is of type {kind!r}")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or any(type(n) is not int or n < 0 for n in numbers):
            raise Refused(f"{path}: {name} has a shape or place that is no list of counts")
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * WIDTHS[kind]:
        raise Refused(f"{path}: {name} of shape {shape} does not fill bytes {offsets}")
    return offsets[0], offsets[1], kind, tuple(shape)


def _values(data, kind):
    if kind == "BF16":  # the upper half of a float32
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, np.dtype(FLOATS[kind]).newbyteorder("<"))


def write_safetensors(path, tensors):
    """float32, in the order given; the same bytes for the same tensors."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, values in tensors.items():
        size = 4 * values.size
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with Path(path).open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            out.write(np.ascontiguousarray(values, "<f4").tobytes())


# ---- a shard of tokens


def write_tokens(path, tokens, vocab_size):
    kind = "<u2" if vocab_size <= 1 << 16 else "<u4"
    header = TOKEN_HEADER.pack(TOKEN_MAGIC, np.dtype(kind).itemsize, 0, vocab_size, len(tokens), bytes(32))
    Path(path).write_bytes(header + np.asarray(tokens, kind).tobytes())


def read_tokens(path):
    """The tokens, and the vocabulary they are of."""
    content = Path(path).read_bytes()
    if len(content) < TOKEN_HEADER.size:
        raise Refused(f"{path}: not a file of tokens")
    magic, width, zero, vocab_size, count, _ = TOKEN_HEADER.unpack_from(content)
    if magic != TOKEN_MAGIC or width not in (2, 4) or zero != 0:
        raise Refused(f"{path}: not a file of tokens")
    if len(content) != TOKEN_HEADER.size + count * width:
        raise Refused(f"{path}: {len(content)} bytes for {count} tokens of {width}")
    tokens = np.frombuffer(content, f"<u{width}", offset=TOKEN_HEADER.size).astype(np.int64)
    if count and tokens.max() >= vocab_size:
        raise Refused(f"{path}: token {tokens.max()} of a vocabulary of {vocab_size}")
    return tokens, vocab_size


def samples_of(tokens, seq):
    """Samples of seq + 1 tokens, neighbours sharing one; what fills none at the end is left out."""
    count = (len(tokens) - 1) // seq
    return np.stack([tokens[i * seq : i * seq + seq + 1] for i in range(count)])
