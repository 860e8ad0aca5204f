#!/usr/bin/python3
"""The reference is itself held against something: finite differences, attention written as loops, Adam's
formulas, one process for two ranks; and its files against what damage does to them."""

import json
import math
import multiprocessing
import os
import socket
import struct
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"SKIPPED the reference's own tests\n    {missing}: apt-get install python3-torch")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tiny
import twenty_steps
from formats import Refused, read_safetensors, read_tokens, samples_of, write_safetensors, write_tokens
from llama import ATTENTION, FEED_FORWARD, Attention, Llama, Recipe, Shape, lr_at, make_optimizer, rotate, train

SHAPE = Shape(dim=16, layers=2, heads=4, kv_heads=2, hidden=24, vocab=11)
SEQ = 6


def small_model(shape=SHAPE, lora=False, seed=1):
    model = Llama(shape, SEQ)
    model.initialize(seed)
    for parameter in model.parameters():
        parameter.data.mul_(10) if parameter.dim() > 1 else parameter.data.add_(0.1 * torch.arange(len(parameter)) / 16)
    if lora:
        model.add_lora(2, 6, 0.0, [*ATTENTION, *FEED_FORWARD])
    return model


def batch(rows=2, seed=3):
    return torch.randint(SHAPE.vocab, (rows, SEQ + 1), generator=torch.Generator().manual_seed(seed))


def two_ranks(rank, port, sums):
    """A rank of DDP with its half of the batch."""
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(small_model(), broadcast_buffers=False, gradient_as_bucket_view=True)
    seen = []

    def report(_step, loss, norm, _lr):
        torch.distributed.all_reduce(loss)
        seen.append((float(loss) / 2, float(norm)))

    train(model, lambda step: batch(4, step)[2 * rank : 2 * rank + 2], Recipe(lr=1e-2, steps=5), report)
    torch.distributed.barrier()
    sums.put((rank, seen))


class Mathematics(unittest.TestCase):
    def setUp(self):
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)

    def test_gradients_are_those_of_finite_differences(self):
        for tied, lora in ((False, False), (True, False), (False, True)):
            model = small_model(Shape(**{**SHAPE.__dict__, "tied": tied}), lora)
            if lora:  # with B zero, A would have no gradient
                for name, parameter in model.named_parameters():
                    if "lora_B" in name:
                        parameter.data.normal_(0, 0.3, generator=torch.Generator().manual_seed(5))
            tokens = batch()
            model(tokens).backward()
            for name, parameter in model.named_parameters():
                if not parameter.requires_grad:
                    self.assertTrue(lora and "lora" not in name and parameter.grad is None, name)
                    continue
                flat, step = parameter.data.view(-1), 1e-6
                at = int(parameter.grad.abs().argmax())
                kept, losses = float(flat[at]), []
                for sign in (1, -1):
                    flat[at] = kept + sign * step
                    losses.append(float(model(tokens)))
                flat[at] = kept
                self.assertAlmostEqual((losses[0] - losses[1]) / (2 * step), float(parameter.grad.view(-1)[at]), 6, name)

    def test_attention_is_that_of_loops_over_heads_and_positions(self):
        layer = Attention(SHAPE)
        model = small_model()
        x = torch.randn(1, SEQ, SHAPE.dim, generator=torch.Generator().manual_seed(2))
        got = layer(x, (model.cos, model.sin), model.mask)
        width = SHAPE.dim // SHAPE.heads
        q, k, v = ((w(x)[0]).tolist() for w in (layer.q_proj, layer.k_proj, layer.v_proj))

        def turned(row, head, position):
            out = [0.0] * width
            for i in range(width // 2):
                angle = position * 10000.0 ** (-2 * i / width)
                a, b = row[head * width + i], row[head * width + i + width // 2]
                out[i] = a * math.cos(angle) - b * math.sin(angle)
                out[i + width // 2] = a * math.sin(angle) + b * math.cos(angle)
            return out

        joined = torch.zeros(SEQ, SHAPE.dim)
        for head in range(SHAPE.heads):
            shared = head * SHAPE.kv_heads // SHAPE.heads
            for t in range(SEQ):
                query = turned(q[t], head, t)
                scores = [sum(a * b for a, b in zip(query, turned(k[s], shared, s))) / math.sqrt(width) for s in range(t + 1)]
                weights = [math.exp(s - max(scores)) for s in scores]
                for i in range(width):
                    joined[t, head * width + i] = sum(
                        w * v[s][shared * width + i] for s, w in enumerate(weights)) / sum(weights)
        self.assertLess(float((layer.o_proj(joined) - got[0]).abs().max().detach()), 1e-12)

    def test_only_the_distance_of_positions_shows_in_scores(self):
        model = small_model()
        q, k = torch.randn(2, 4, generator=torch.Generator().manual_seed(4))
        at = lambda x, p: rotate(x, (model.cos[p], model.sin[p]))
        self.assertAlmostEqual(float(at(q, 1) @ at(k, 0)), float(at(q, 5) @ at(k, 4)), 12)

    def test_no_token_sees_a_later_one(self):
        model, tokens = small_model(), batch(1)
        with torch.no_grad():
            x = model.model.embed_tokens(tokens[:, :-1])
            changed = x.clone()
            changed[:, -1] += 1
            outs = []
            for start in (x, changed):
                for block in model.model.layers:
                    start = block(start, (model.cos, model.sin), model.mask)
                outs.append(start)
        self.assertEqual(float((outs[0] - outs[1])[:, :-1].abs().max()), 0)
        self.assertGreater(float((outs[0] - outs[1])[:, -1].abs().max()), 0.1)

    def test_a_zero_b_leaves_the_base_as_it_is(self):
        self.assertEqual(float(small_model()(batch()).detach()), float(small_model(lora=True)(batch()).detach()))

    def test_an_adapter_is_the_scaled_product_added_to_its_matrix(self):
        adapted = small_model(lora=True)
        merged = small_model()
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.data.normal_(0, 0.3, generator=torch.Generator().manual_seed(parameter.numel()))
        for name, parameter in merged.named_parameters():
            owner = dict(adapted.named_modules()).get(name.removesuffix(".weight"))
            if hasattr(owner, "lora_A"):
                parameter.data += 6 / 2 * owner.lora_B.weight.data @ owner.lora_A.weight.data
        self.assertAlmostEqual(float(adapted(batch()).detach()), float(merged(batch()).detach()), 12)

    def test_the_optimizer_does_what_its_formulas_say(self):
        recipe = Recipe(lr=0.01, weight_decay=0.1)
        model = torch.nn.Module()
        model.matrix = torch.nn.Parameter(torch.tensor([[0.5]]))
        model.vector = torch.nn.Parameter(torch.tensor([0.5]))
        optimizer = make_optimizer(model, recipe)
        p, m, v = {"matrix": 0.5, "vector": 0.5}, 0.0, 0.0
        for step, g in enumerate((0.3, -0.2, 0.7), 1):
            model.matrix.grad, model.vector.grad = torch.tensor([[g]]), torch.tensor([g])
            optimizer.step()
            m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
            move = 0.01 * (m / (1 - 0.9**step)) / (math.sqrt(v / (1 - 0.95**step)) + 1e-8)
            p = {"matrix": p["matrix"] * (1 - 0.01 * 0.1) - move, "vector": p["vector"] - move}
        self.assertAlmostEqual(model.matrix.item(), p["matrix"], 12)
        self.assertAlmostEqual(model.vector.item(), p["vector"], 12)

    def test_the_rate_rises_and_falls(self):
        recipe = Recipe(lr=1.0, min_lr=0.2, warmup=4, steps=14)
        for step, rate in ((0, 0.25), (3, 1.0), (4, 1.0), (9, 0.6), (14, 0.2), (50, 0.2)):
            self.assertAlmostEqual(lr_at(recipe, step), rate, 12)

    def test_two_ranks_are_one_process_with_both_their_samples(self):
        alone = []
        train(small_model(), lambda step: batch(4, step), Recipe(lr=1e-2, steps=5),
              lambda _step, loss, norm, _lr: alone.append((float(loss), float(norm))))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        sums = context.Queue()
        ranks = [context.Process(target=two_ranks, args=(rank, port, sums)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        try:
            results = [sums.get(timeout=240) for _ in ranks]
        finally:
            for rank in ranks:
                rank.join(20)
                rank.kill()
        for _, seen in results:
            for (loss, norm), (want_loss, want_norm) in zip(seen, alone, strict=True):
                self.assertAlmostEqual(loss, want_loss, 12)
                self.assertAlmostEqual(norm, want_norm, 12)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def safetensors(self, header, data=b""):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path = self.dir / "x.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return path

    def test_tensors_come_back_as_they_were_written(self):
        tensors = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.float32([1.5])}
        write_safetensors(self.dir / "x", tensors)
        back = read_safetensors(self.dir / "x")
        self.assertEqual(list(back), ["b", "a"])
        for name, values in tensors.items():
            np.testing.assert_array_equal(back[name], values)

    def test_bfloat16_is_the_upper_half_of_a_float(self):
        path = self.safetensors({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, struct.pack("<HH", 0x3F80, 0xC040))
        np.testing.assert_array_equal(read_safetensors(path)["x"], [1, -3])

    def test_a_damaged_file_of_tensors_is_refused(self):
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        for header, data in (({"x": one}, b"123"), ({"x": one}, b"12345"), ({"x": {**one, "shape": [2]}}, b"1234"),
                             ({"x": one, "y": one}, b"1234"), ({"x": {**one, "dtype": "I8"}}, b"1234"),
                             ({"x": {**one, "data_offsets": [4, 8]}}, b"12345678"), ({"x": {**one, "shape": [-1]}}, b"1234"),
                             ({"x": {**one, "shape": [True]}}, b"1234"), ({"x": 1}, b""), (b"[]", b""), (b"{", b""),
                             (b'{"x":1,"x":1}', b"")):
            with self.assertRaises(Refused, msg=header):
                read_safetensors(self.safetensors(header, data))
        (self.dir / "short").write_bytes(struct.pack("<Q", 100) + b"{}")
        with self.assertRaises(Refused):
            read_safetensors(self.dir / "short")

    def test_tokens_come_back_and_damage_is_refused(self):
        path = self.dir / "x.tok"
        write_tokens(path, [0, 1, 2, 3, 4, 9], 10)
        tokens, vocab = read_tokens(path)
        self.assertEqual((tokens.tolist(), vocab), ([0, 1, 2, 3, 4, 9], 10))
        self.assertEqual(samples_of(tokens, 2).tolist(), [[0, 1, 2], [2, 3, 4]])
        content = path.read_bytes()
        for damaged in (content[:-1], content + b"1", b"X" + content[1:], content[:20], content[:-2] + b"\x0a\0"):
            path.write_bytes(damaged)
            with self.assertRaises(Refused):
                read_tokens(path)

    def test_the_tiny_model_is_the_same_to_the_bit_each_time(self):
        tiny.write_all(self.dir / "tiny")
        for case in twenty_steps.CASES:
            self.assertEqual(twenty_steps.stored(case)["inputs"], tiny.checksums(self.dir / "tiny"))

    def test_a_stored_value_that_drifted_is_told(self):
        now = twenty_steps.stored("full")
        self.assertEqual(twenty_steps.differences("full", now), [])
        now["losses"][7] += 1e-6
        now["gradient_norms"].pop()
        found = twenty_steps.differences("full", now)
        self.assertIn("losses of step 8", found[0])
        self.assertIn("4 gradient_norms, 5 are stored", found[1])


if __name__ == "__main__":
    program = unittest.main(exit=False)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)
