"""A Hugging Face Llama's folder and a PEFT adapter's, as a model of llama.py."""

from pathlib import Path

from formats import Refused, parse_json, read_safetensors
from llama import ATTENTION, FEED_FORWARD, Llama, Shape

KNOWN = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None}


def read_shape(folder):
    path = Path(folder) / "config.json"
    config = parse_json(path.read_text(), path)
    for key, value in KNOWN.items():
        if config.get(key, value) != value:
            raise Refused(f"{path}: {key} is {config[key]!r}, only {value!r} is known")
    heads, dim = config["num_attention_heads"], config["hidden_size"]
    if config.get("head_dim", dim // heads) * heads != dim:
        raise Refused(f"{path}: heads that are not as wide as the model")
    return Shape(dim=dim, layers=config["num_hidden_layers"], heads=heads,
                 kv_heads=config.get("num_key_value_heads", heads), hidden=config["intermediate_size"],
                 vocab=config["vocab_size"], tied=config.get("tie_word_embeddings", False),
                 rope_theta=config.get("rope_theta", 10000.0), norm_eps=config.get("rms_norm_eps", 1e-6))


def load_model(folder, seq):
    model = Llama(read_shape(folder), seq)
    model.load_weights(read_safetensors(Path(folder) / "model.safetensors"))
    return model


def add_adapter(model, folder):
    """The adapter of a folder in PEFT's layout."""
    path = Path(folder) / "adapter_config.json"
    config = parse_json(path.read_text(), path)
    for key, value in {"peft_type": "LORA", "bias": "none", "fan_in_fan_out": False, "use_rslora": False}.items():
        if config.get(key, value) != value:
            raise Refused(f"{path}: {key} is {config[key]!r}, only {value!r} is known")
    targets = [t for t in (*ATTENTION, *FEED_FORWARD) if t.split(".")[1] in config["target_modules"]]
    if len(targets) != len(config["target_modules"]):
        raise Refused(f"{path}: target_modules {config['target_modules']}")
    model.add_lora(config["r"], config["lora_alpha"], config.get("lora_dropout", 0.0), targets)
    model.load_adapter(read_safetensors(Path(folder) / "adapter_model.safetensors"))
