"""Names and shapes of a Llama's tensors and of an adapter's, in Hugging Face's and PEFT's words."""

OF_BLOCK = {
    "input_layernorm": ("hidden_size",),
    "self_attn.q_proj": ("q", "hidden_size"),
    "self_attn.k_proj": ("kv", "hidden_size"),
    "self_attn.v_proj": ("kv", "hidden_size"),
    "self_attn.o_proj": ("hidden_size", "q"),
    "post_attention_layernorm": ("hidden_size",),
    "mlp.gate_proj": ("intermediate_size", "hidden_size"),
    "mlp.up_proj": ("intermediate_size", "hidden_size"),
    "mlp.down_proj": ("hidden_size", "intermediate_size"),
}


def _sizes(config):
    return {**config, "q": config["num_attention_heads"] * config["head_dim"],
            "kv": config["num_key_value_heads"] * config["head_dim"]}


def tensor_shapes(config, tied):
    sizes = _sizes(config)
    table = (config["vocab_size"], config["hidden_size"])
    shapes = {"model.embed_tokens.weight": table}
    for layer in range(config["num_hidden_layers"]):
        for module, names in OF_BLOCK.items():
            shapes[f"model.layers.{layer}.{module}.weight"] = tuple(sizes[name] for name in names)
    shapes["model.norm.weight"] = (config["hidden_size"],)
    if not tied:
        shapes["lm_head.weight"] = table
    return shapes


def adapter_shapes(config, rank):
    """Of every matrix of every block: A [rank, in], B [out, rank]."""
    sizes, shapes = _sizes(config), {}
    for layer in range(config["num_hidden_layers"]):
        for module, names in OF_BLOCK.items():
            if len(names) == 2:
                at = f"base_model.model.model.layers.{layer}.{module}"
                shapes[f"{at}.lora_A.weight"] = (rank, sizes[names[1]])
                shapes[f"{at}.lora_B.weight"] = (sizes[names[0]], rank)
    return shapes
