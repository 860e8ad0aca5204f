"""A Llama-style decoder, its LoRA adapters and its training, in plain eager PyTorch: what ezpz-train is
held against. Written from the mathematics and sharing no code with the trainer.

Shapes: B batch, S sequence, D model width, H heads, K key and value heads, G = H / K, E = D / H.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

ATTENTION = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
FEED_FORWARD = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
TARGETS = {"attn": ATTENTION, "mlp": FEED_FORWARD}
PEFT_PREFIX = "base_model.model."


@dataclass
class Shape:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    vocab: int
    tied: bool = False
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class LoraLinear(nn.Module):
    """W x + alpha / r * B A dropout(x): A as it is given, B zero at first, W frozen."""

    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        self.base = base
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)
        self.scaling = alpha / rank
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.groups, self.kv_heads = shape.heads // shape.kv_heads, shape.kv_heads
        self.head_dim = shape.dim // shape.heads
        kv_dim = shape.kv_heads * self.head_dim
        self.q_proj = linear(shape.dim, shape.dim)
        self.k_proj = linear(shape.dim, kv_dim)
        self.v_proj = linear(shape.dim, kv_dim)
        self.o_proj = linear(shape.dim, shape.dim)

    def forward(self, x_BSD, rope, mask):
        batch, seq, _ = x_BSD.shape
        heads = (batch, seq, -1, self.head_dim)
        q = rotate(self.q_proj(x_BSD).view(heads).transpose(1, 2), rope)
        k = rotate(self.k_proj(x_BSD).view(heads).transpose(1, 2), rope)
        v = self.v_proj(x_BSD).view(heads).transpose(1, 2)
        # Query heads k * G to k * G + G - 1 read key head k: all of a group are one product.
        q = q.reshape(batch, self.kv_heads, self.groups * seq, self.head_dim)
        scores = (q @ k.transpose(-2, -1)).view(batch, self.kv_heads, self.groups, seq, seq)
        weights = torch.softmax(scores / math.sqrt(self.head_dim) + mask, dim=-1)
        out = weights.view(batch, self.kv_heads, self.groups * seq, seq) @ v
        out = out.view(batch, -1, seq, self.head_dim).transpose(1, 2).reshape(batch, seq, -1)
        return self.o_proj(out)


def rotate(x, rope):
    """Turns dimension i of a head together with i + E / 2, by the position times theta^(-2i / E)."""
    cos, sin = rope
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj = linear(shape.dim, shape.hidden)
        self.up_proj = linear(shape.dim, shape.hidden)
        self.down_proj = linear(shape.hidden, shape.dim)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.input_layernorm = RMSNorm(shape.dim, shape.norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = RMSNorm(shape.dim, shape.norm_eps)
        self.mlp = FeedForward(shape)

    def forward(self, x, rope, mask):
        x = x + self.self_attn(self.input_layernorm(x), rope, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.dim)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.dim, shape.norm_eps)


class Llama(nn.Module):
    """Parameters are called as in Hugging Face's checkpoints. Called with tokens B x (S + 1), it gives
    the mean cross-entropy of each token after the first."""

    def __init__(self, shape, seq):
        super().__init__()
        self.shape = shape
        self.model = Decoder(shape)
        self.lm_head = linear(shape.dim, shape.vocab)
        if shape.tied:
            self.lm_head.weight = self.model.embed_tokens.weight
        head_dim = shape.dim // shape.heads
        powers = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
        angles = torch.arange(seq, dtype=torch.float64)[:, None] * shape.rope_theta**-powers
        later = torch.full((seq, seq), -math.inf).triu(1)
        for name, values in (("cos", angles.cos()), ("sin", angles.sin()), ("mask", later)):
            self.register_buffer(name, values.to(torch.get_default_dtype()), persistent=False)

    def forward(self, tokens):
        x = self.model.embed_tokens(tokens[:, :-1])
        for block in self.model.layers:
            x = block(x, (self.cos, self.sin), self.mask)
        logits = self.lm_head(self.model.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].reshape(-1))

    def initialize(self, seed):
        """Any values: for benchmarks, where only the shape matters."""
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                parameter.data.normal_(0, 0.02, generator=generator)

    def load_weights(self, tensors):
        """Every tensor of a checkpoint, none missing and none left over."""
        own = {name: p for name, p in self.named_parameters()}
        missing, unknown = set(own) - set(tensors), set(tensors) - set(own)
        if missing or unknown:
            raise ValueError(f"tensors missing: {sorted(missing)}; not known: {sorted(unknown)}")
        for name, parameter in own.items():
            values = torch.tensor(tensors[name], dtype=parameter.dtype)
            if values.shape != parameter.shape:
                raise ValueError(f"{name} is {tuple(values.shape)} and not {tuple(parameter.shape)}")
            parameter.data.copy_(values)

    def add_lora(self, rank, alpha, dropout, targets):
        """Freezes all there is and adds adapters to these matrices of every block."""
        for parameter in self.parameters():
            parameter.requires_grad_(False)
        for block in self.model.layers:
            for target in targets:
                part, name = target.split(".")
                owner = getattr(block, part)
                setattr(owner, name, LoraLinear(getattr(owner, name), rank, alpha, dropout))

    def load_adapter(self, tensors):
        """In the names of PEFT's files."""
        own = {peft_name(name): p for name, p in self.named_parameters() if p.requires_grad}
        if set(own) != set(tensors):
            raise ValueError(f"the adapter's tensors are not the model's: {sorted(set(own) ^ set(tensors))}")
        for name, parameter in own.items():
            parameter.data.copy_(torch.tensor(tensors[name], dtype=parameter.dtype))


def peft_name(name):
    return PEFT_PREFIX + name


# ---- training


@dataclass
class Recipe:
    lr: float = 3e-4
    min_lr: float = 0.0
    warmup: int = 0
    steps: int = 20
    betas: tuple = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1
    clip: float = 1.0


def lr_at(recipe, step):
    """Of the step-th update, counted from 0: a line up to lr, which the warm-up's last step has, then half
    a cosine down to min_lr."""
    if step < recipe.warmup:
        return recipe.lr * (step + 1) / recipe.warmup
    share = min(1.0, (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup))
    return recipe.min_lr + (recipe.lr - recipe.min_lr) * (1 + math.cos(math.pi * share)) / 2


def make_optimizer(model, recipe):
    """AdamW; matrices decay (the embedding, too), vectors do not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() > 1], "weight_decay": recipe.weight_decay},
              {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=recipe.lr, betas=recipe.betas, eps=recipe.eps)


def train(model, batch_of, recipe, report):
    """batch_of(step) gives tokens B x (S + 1); model may be a DistributedDataParallel. After each step
    report(step from 1, loss, gradient norm before clipping, lr)."""
    optimizer = make_optimizer(model, recipe)
    trained = [p for p in model.parameters() if p.requires_grad]
    for step in range(recipe.steps):
        lr = lr_at(recipe, step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss = model(batch_of(step))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(trained, recipe.clip if recipe.clip > 0 else math.inf)
        optimizer.step()
        report(step + 1, loss.detach(), norm, lr)
