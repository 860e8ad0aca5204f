"""A tiny model, an adapter for it and a text, the same to the bit wherever they are made: every number is
a function of a seed, a name and a position, in integers and in float64 operations that round alike
everywhere.

    tests/reference/tiny.py FOLDER
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np

from formats import write_safetensors, write_tokens
from llama_names import adapter_shapes, tensor_shapes

SEED = 2026
VOCAB, DIM, LAYERS, HEADS, KV_HEADS, HIDDEN = 257, 64, 2, 4, 2, 96
SEQ, BATCH = 32, 4
LORA_RANK, LORA_ALPHA = 4, 8
END_OF_TEXT = 256

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": DIM,
    "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "head_dim": DIM // HEADS, "max_position_embeddings": SEQ, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "rope_scaling": None, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
    "tie_word_embeddings": False, "torch_dtype": "float32",
}
ADAPTER = {
    "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "tiny", "r": LORA_RANK,
    "lora_alpha": LORA_ALPHA, "lora_dropout": 0.0, "bias": "none", "fan_in_fan_out": False, "use_rslora": False,
    "inference_mode": False,
    "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
}
# What must come out; tests/reference/reference_test.py compares.
FILES = ("model/config.json", "model/model.safetensors", "tied/config.json", "tied/model.safetensors",
         "adapter/adapter_config.json", "adapter/adapter_model.safetensors", "text.tok")


def counted_bits(name, count):
    """count random 64-bit numbers of a stream: a hash of the stream's name and of each position."""
    (key,) = np.frombuffer(hashlib.sha256(f"{SEED} {name}".encode()).digest()[:8], "<u8")
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def counted_values(name, shape, deviation):
    """Around 0: the sum of four uniform numbers is near enough to a normal one, and is exact in float64."""
    count = int(np.prod(shape))
    quarters = counted_bits(name, count).view("<u2").reshape(count, 4).astype(np.float64)
    # Each is uniform on 0 .. 65535, so the sum's variance is 4 * (65536^2 - 1) / 12, close to 65536^2 / 3.
    centred = (quarters.sum(axis=1) - 2 * 65535.0) / 65536.0
    return (centred * (deviation * 1.7320508075688772)).astype(np.float32).reshape(shape)


def text(count):
    """Bytes that a model can learn: few words, one of which likely follows another."""
    words = [b"the ", b"node ", b"died ", b"and ", b"a ", b"spare ", b"took ", b"its ", b"place. "]
    out, word = b"", 0
    for bits in counted_bits("text", count):
        out += words[word]
        word = (word + 1 + (int(bits) % 4 == 0) * (int(bits >> np.uint64(8)) % 5)) % len(words)
        if len(out) >= count - 1:
            break
    return np.array([END_OF_TEXT, *out[: count - 1]])


def write_model(folder, tied):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, "tie_word_embeddings": tied}, indent=1) + "\n")
    tensors = {}
    for name, shape in tensor_shapes(CONFIG, tied).items():
        # A norm's weight away from 1, so that one that is left out shows.
        values = counted_values(name, shape, 0.1 if len(shape) == 1 else 1 / math.sqrt(shape[-1]))
        tensors[name] = values + np.float32(1) if len(shape) == 1 else values
    write_safetensors(folder / "model.safetensors", tensors)


def write_adapter(folder):
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(ADAPTER, indent=1) + "\n")
    tensors = {name: np.zeros(shape, np.float32) if ".lora_B." in name else counted_values(name, shape, 1 / math.sqrt(shape[1]))
               for name, shape in adapter_shapes(CONFIG, LORA_RANK).items()}
    write_safetensors(folder / "adapter_model.safetensors", tensors)


def write_all(folder):
    """model/, tied/, adapter/ and text.tok; as many samples as a step takes, so that every step has them
    all and no order of samples needs to be agreed on."""
    folder = Path(folder)
    write_model(folder / "model", tied=False)
    write_model(folder / "tied", tied=True)
    write_adapter(folder / "adapter")
    write_tokens(folder / "text.tok", text(BATCH * SEQ + 1), VOCAB)


def checksums(folder):
    return {name: hashlib.sha256((Path(folder) / name).read_bytes()).hexdigest() for name in FILES}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_all(sys.argv[1])
    for file, digest in checksums(sys.argv[1]).items():
        print(digest, file)
