#!/usr/bin/python3
"""ezpz-train as processes: alone, as ranks that find each other, and as ranks that lose each other.
Minutes on two cores, no root."""

import csv
import json
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

from harness import check, check_equal, main, scenario
from train_ranks import STEP, TIME_LIMIT_S, Ranks, clean_environment, free_port

STOPPED, PEERS_LOST, CANNOT_SAVE = 75, 76, 77
SMALL = ("--model", "debug", "--dim", "32", "--n-layers", "2", "--hidden-dim", "64", "--vocab-size", "96", "--seq-len", "16",
         "--lr", "3e-3", "--warmup-iters", "3", "--threads", "1")


def trained(context, count, *flags):
    ranks = Ranks(context, count, *SMALL, *flags)
    codes = ranks.wait()
    check_equal(codes, [0] * count, f"exit codes of {count} ranks; rank 0 said: {ranks.output()[-2000:]}")
    return ranks


@scenario
def alone_it_trains_and_sums_up(context):
    """Without a launcher it is one rank: a banner, a line a step with six decimals, a JSON object at the end."""
    ranks = trained(context, 1, "--train-iters", 12, "--json")
    lines = ranks.output().splitlines()
    check(re.fullmatch(r"\['.+'\]\[device='cpu'\]\[node=0/0\]\[local_rank=0/0\]\[rank=0/0\]", lines[0]), f"banner: {lines[0]}")
    steps = ranks.steps()
    check_equal([n for n, _, _ in steps], list(range(1, 13)), "the steps")
    check(steps[-1][1] < steps[0][1] - 0.1, f"nothing was learnt: {steps}")
    told = json.loads(lines[-1])
    check_equal(told["steps"], 12, "steps of the summary")
    check_equal(round(told["final_loss"], 6), steps[-1][1], "final loss")
    for name in ("tokens_per_sec", "tokens_per_sec_per_gpu", "mfu", "tflops", "params", "peak_rss_bytes"):
        check(told[name] > 0, f"{name} is {told[name]}")


@scenario
def ranks_train_as_one_process_does(context):
    """Two and four processes, over gloo or shared memory, have the losses and gradient norms of one, at equal global batch."""
    alone = trained(context, 1, "--train-iters", 20, "--batch-size", 4).steps()
    for count, flags in ((2, ("--batch-size", 1, "--grad-accum", 2, "--transport", "gloo")), (2, ("--batch-size", 2)),
                         (4, ("--batch-size", 1)), (2, ("--batch-size", 4, "--tp", 2)),
                         (4, ("--batch-size", 2, "--tp", 2, "--transport", "gloo")), (4, ("--batch-size", 1, "--tied", "--transport", "gloo"))):
        if "--tied" in flags:
            alone = trained(context, 1, "--train-iters", 20, "--batch-size", 4, "--tied").steps()
        ranks = trained(context, count, "--train-iters", 20, *flags)
        steps = ranks.steps()
        check_equal(len(steps), 20, f"steps of {count} ranks")
        for (n, loss, norm), (_, want_loss, want_norm) in zip(steps, alone):
            check(abs(loss - want_loss) < 1e-4, f"{count} ranks, step {n}: loss {loss}, alone {want_loss}")
            check(n > 5 or abs(norm / want_norm - 1) < 1e-4, f"{count} ranks, step {n}: norm {norm}, alone {want_norm}")
        check_equal(len(STEP.findall(ranks.output(1))), 0, "step lines of rank 1")


@scenario
def asked_to_stop_all_end_after_the_same_step(context):
    """SIGTERM to one rank: every rank ends after a whole step, says where, with an exit code of its own."""
    ranks = Ranks(context, 2, *SMALL, "--train-iters", 1000000)
    ranks.until_step(2)
    ranks.processes[1].send_signal(signal.SIGTERM)
    check_equal(ranks.wait(), [STOPPED, STOPPED], "exit codes")
    last = ranks.steps()[-1][0]
    check(f"stopped step={last} of 1000000" in ranks.output(), f"rank 0 ended with: {ranks.output()[-500:]}")


@scenario
def a_dead_peer_is_noticed_at_once(context):
    """A killed rank: the other says what it saw in one line and exits with a code of its own, over either transport."""
    for transport in ("auto", "gloo"):
        ranks = Ranks(context, 2, *SMALL, "--train-iters", 1000000, "--transport", transport)
        ranks.until_step(2)
        ranks.processes[0].send_signal(signal.SIGKILL)
        check_equal(ranks.processes[1].wait(timeout=20), PEERS_LOST, f"exit code of the survivor over {transport}")
        lines = [line for line in ranks.output(1).splitlines() if "lost its peers" in line]
        check_equal(len(lines), 1, f"lines about it in {ranks.output(1)[-1000:]}")


@scenario
def a_peer_that_never_comes_is_not_awaited_for_ever(context):
    """A rank whose peers do not come gives up after the time for connecting."""
    env = {**clean_environment(context), "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = subprocess.run([str(context.ezpz), "train", *SMALL], env=env, capture_output=True, timeout=TIME_LIMIT_S, cwd=context.dir)
    check_equal(done.returncode, PEERS_LOST, f"exit code; it said {done.stderr.decode()[-500:]}")
    check(b"lost its peers: meeting at 127.0.0.1" in done.stderr, f"it said {done.stderr.decode()[-500:]}")


def failed(context, count, codes, *flags):
    """Ranks that end with these codes."""
    ranks = Ranks(context, count, *SMALL, *flags)
    check_equal(ranks.wait(), codes, f"exit codes; rank 0 said: {ranks.output()[-2000:]}")
    return ranks


def exact_losses(context, outdir):
    """(step, loss) to the last bit, as they were written."""
    lines = (context.dir / outdir / "metrics-0.jsonl").read_text().splitlines()
    records = [json.loads(line)["metrics"] for line in lines]
    return [(r["train/iter"], r["train/loss"]) for r in records]


@scenario
def killed_at_any_step_it_goes_on_as_if_nothing_had_been(context):
    """A rank is killed by SIGKILL between checkpoints; started again, the losses are bit for bit those of an unbroken run."""
    steps = random.Random(context.dir.name).randint(5, 14)
    trained(context, 2, "--train-iters", 15, "--outdir", "whole")
    unbroken = exact_losses(context, "whole")
    how = ("--train-iters", 15, "--outdir", "out", "--save-interval", 3)
    broken = failed(context, 2, [PEERS_LOST, -signal.SIGKILL], *how, "--fault", f"kill@{steps}:rank=1")
    check((context.dir / f"out/FAULT-kill-step-{steps}-rank-1-attempt-1").exists(), "the fault left no receipt")
    again = trained(context, 2, *how)
    saved = (steps - 1) // 3 * 3
    check(f"resumed from checkpoint step={saved} " in again.output(), f"it said {again.output()[:1500]}")
    check_equal([n for n, _, _ in broken.steps()], list(range(1, steps)), "steps up to the kill")
    check_equal([n for n, _, _ in again.steps()], list(range(saved + 1, 16)), "steps after it")
    # Each as it was first computed, and again where it was done again.
    check_equal([pair for pair in exact_losses(context, "out") if pair not in unbroken], [], "losses that differ in any bit")


@scenario
def a_checkpoint_goes_on_with_any_other_division(context):
    """Saved by one process; read by two, by a mesh of four, by two replicas; the losses are those of the unbroken run."""
    unbroken = trained(context, 1, "--train-iters", 12, "--batch-size", 4).steps()
    trained(context, 1, "--train-iters", 12, "--batch-size", 4, "--outdir", "out", "--save-interval", 6)
    shutil.rmtree(context.dir / "out/checkpoints/step-00000012")
    for count, flags in ((2, ("--batch-size", 2)), (4, ("--batch-size", 2, "--tp", 2)), (4, ("--batch-size", 1, "--dp-shard", 2)),
                         (2, ("--batch-size", 2, "--dp-shard", 1, "--async-save"))):
        out = f"out{count}{flags[2] if len(flags) > 2 else ''}{flags[3] if len(flags) > 3 else ''}"
        shutil.copytree(context.dir / "out", context.dir / out)
        ranks = trained(context, count, "--train-iters", 12, "--outdir", out, "--save-interval", 2, *flags)
        steps = ranks.steps()
        check_equal([n for n, _, _ in steps], list(range(7, 13)), f"steps of {count} ranks {flags}")
        for (n, loss, _), (_, want, _) in zip(steps, unbroken[6:]):
            check(abs(loss - want) < 1e-4, f"{count} ranks {flags}, step {n}: loss {loss}, unbroken {want}")
        check_equal(sorted(p.name for p in (context.dir / out / "checkpoints").iterdir()), ["step-00000010", "step-00000012"],
                    "what is kept of the checkpoints")


@scenario
def a_checkpoint_of_another_training_is_refused(context):
    """Another shape, another kind of training, other data: one rank's word why, exit 1, not a step, and nothing is overwritten."""
    how = ("--train-iters", 4, "--outdir", "out")
    trained(context, 1, "--train-iters", 2, "--outdir", "out")
    for flags, piece in ((("--hidden-dim", 96), "hidden is 64 there"), (("--lora-rank", 2), "lora_rank is null there"),
                         (("--optimizer", "sgd"), "optimizer is"), (("--seed", 43), "seed")):
        ranks = failed(context, 1, [1], *how, *flags)
        check_equal(ranks.steps(), [], f"steps with {flags}")
        check(piece in ranks.output() and "damaged" not in ranks.output(), f"{flags}: it said {ranks.output()}")
    check_equal([p.name for p in (context.dir / "out/checkpoints").iterdir()], ["step-00000002"], "checkpoints")
    check_equal([n for n, _, _ in trained(context, 1, *how).steps()], [3, 4], "steps of the training itself")


@scenario
def a_damaged_checkpoint_is_passed_over_with_a_warning(context):
    """A flipped byte in the newest: the one before is taken, and it is said; none left whole: an error, and nothing is trained."""
    how = ("--train-iters", 6, "--outdir", "out", "--save-interval", 3)
    trained(context, 2, *how)
    for name, from_step in (("step-00000006", 3), ("step-00000003", None)):
        shard = context.dir / "out/checkpoints" / name / "shard-00001.bin"
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        if from_step is None:
            ranks = failed(context, 2, [1, 1], *how)
            check_equal(ranks.steps(), [], "steps from damaged checkpoints")
            return
        ranks = trained(context, 2, *how)
        check(f"resumed from checkpoint step={from_step} " in ranks.output() and "step-00000006" in ranks.output(),
              f"it said {ranks.output()}")
        shard = context.dir / "out/checkpoints/step-00000006/shard-00001.bin"
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)


@scenario
def a_full_disk_loses_no_older_checkpoint_and_ends_the_run_only_in_the_end(context):
    """ENOSPC while saving: said, the run goes on, the old checkpoint stays; three times in a row: exit 77."""
    how = ("--train-iters", 12, "--outdir", "out", "--save-interval", 2)
    for saver in ((), ("--async-save",)):
        shutil.rmtree(context.dir / "out", ignore_errors=True)
        once = trained(context, 2, *how, *saver, "--fault", "enospc@4:rank=1")
        check("step 4 could not be saved (1 in a row)" in once.output() and "No space left" in once.output(1),
              f"it said {once.output()} {once.output(1)}")
        check((context.dir / "out/FAULT-enospc-step-4-rank-1-attempt-1").exists(), "the fault left no receipt")
        check_equal(len(once.steps()), 12, "steps")
        shutil.rmtree(context.dir / "out")
        failed(context, 2, [CANNOT_SAVE, CANNOT_SAVE], *how, *saver, "--fault", "enospc@4:times=9")
        check_equal([p.name for p in (context.dir / "out/checkpoints").iterdir()], ["step-00000002"], "what is left")


@scenario
def asked_to_stop_it_saves_and_goes_on_from_there(context):
    """SIGTERM: the step ends, a checkpoint is written, exit 75; the next start goes on at the next step."""
    ranks = Ranks(context, 2, *SMALL, "--train-iters", 1000000, "--outdir", "out")
    ranks.until_step(2)
    ranks.processes[0].send_signal(signal.SIGTERM)
    check_equal(ranks.wait(), [STOPPED, STOPPED], "exit codes")
    last = ranks.steps()[-1][0]
    check(f"step={last} checkpoint=out/checkpoints/step-{last:08d} saved" in ranks.output(), f"it said {ranks.output()[-500:]}")
    again = trained(context, 2, "--train-iters", last + 2, "--outdir", "out")
    check_equal([n for n, _, _ in again.steps()], [last + 1, last + 2], "steps after it")


def four_sentences(context, count=4):
    """Tokens of exactly so many samples of 16: every step of as large a batch sees all of them."""
    tokens = [(i * i * 7 + i // 3) % 90 for i in range(16 * count + 1)]
    header = struct.pack("<8sIIQQ", b"EZPZTOK1", 2, 0, 96, len(tokens)).ljust(64, b"\0")
    (context.dir / "few.tok").write_bytes(header + struct.pack(f"<{len(tokens)}H", *tokens))
    return "few.tok"


@scenario
def adapters_train_are_saved_as_peft_does_and_merge_into_the_weights(context):
    """LoRA over one, two and four ranks alike; the merged folder, loaded as a model, has the loss of the adapted one."""
    data = ("--dataset", four_sentences(context))
    lora = ("--lora-rank", 4, "--lora-target", "attn,mlp", "--lr", "6e-3", *data)
    alone = trained(context, 1, "--train-iters", 20, "--batch-size", 4, *lora, "--outdir", "out", "--export", "merged").steps()
    check(alone[-1][1] < alone[0][1] - 0.1, f"nothing was learnt: {alone}")
    for count, flags in ((2, ("--batch-size", 2)), (4, ("--batch-size", 2, "--tp", 2)), (2, ("--batch-size", 4, "--tp", 2, "--recompute", "full"))):
        for (n, loss, norm), (_, want, want_norm) in zip(trained(context, count, "--train-iters", 20, *lora, *flags).steps(), alone):
            check(abs(loss - want) < 1e-4, f"{count} ranks {flags}, step {n}: loss {loss}, alone {want}")
            check(n > 5 or abs(norm / want_norm - 1) < 1e-4, f"{count} ranks {flags}, step {n}: norm {norm}, alone {want_norm}")
    check_equal(sorted(p.name for p in (context.dir / "out").iterdir()), ["adapter", "checkpoints", "metrics-0.jsonl"], "what is left")
    config = json.loads((context.dir / "out/adapter/adapter_config.json").read_text())
    check_equal((config["peft_type"], config["r"], sorted(config["target_modules"])),
                ("LORA", 4, ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]), "adapter_config.json")
    # The adapters' next step and the merged model's first see the same samples.
    adapted = trained(context, 1, "--train-iters", 21, "--batch-size", 4, *lora, "--outdir", "out").steps()[0][1]
    flags = ("--seq-len", 16, "--threads", 1, "--batch-size", 4, *data, "--train-iters", 1)
    merged = Ranks(context, 1, "--model", "merged", *flags)
    check_equal(merged.wait(), [0], f"exit code; it said {merged.output()[-1000:]}")
    check(abs(merged.steps()[0][1] - adapted) < 2e-5, f"merged {merged.steps()[0][1]}, adapted {adapted}")
    # And the folder is divided as any model is.
    divided = Ranks(context, 4, "--model", "merged", *flags[:4], "--batch-size", 2, "--tp", 2, *flags[6:])
    check_equal(divided.wait(), [0] * 4, f"exit codes; it said {divided.output()[-1000:]}")
    check(abs(divided.steps()[0][1] - adapted) < 2e-5, f"divided {divided.steps()[0][1]}, adapted {adapted}")


@scenario
def a_text_is_tokenized_once_and_its_order_survives_a_restart(context):
    """A text file: its tokens are kept; a run in two parts sees the samples of a run in one."""
    (context.dir / "text.txt").write_text("".join(f"the {i}th line of a text, and {i * i} is a square\n" for i in range(400)))
    text = ("--dataset", "text.txt", "--vocab-size", 257)
    whole = trained(context, 2, "--train-iters", 10, *text).steps()
    kept = sorted(p.name for p in (context.dir / "ezpz-data").iterdir())
    check_equal(len(kept), 1, f"files of tokens: {kept}")
    made = subprocess.run([str(context.ezpz), "train", "tokenize", "made.tok", "text.txt"], env=clean_environment(context),
                          capture_output=True, timeout=TIME_LIMIT_S, cwd=context.dir)
    check_equal((made.returncode, made.stderr), (0, b""), "tokenize")
    check_equal((context.dir / "made.tok").read_bytes(), (context.dir / "ezpz-data" / kept[0]).read_bytes(), "the tokens")
    trained(context, 2, "--train-iters", 10, *text, "--outdir", "out", "--save-interval", 4, "--fault", "exit@7:attempt=2")
    shutil.rmtree(context.dir / "out/checkpoints/step-00000010")
    check_equal(trained(context, 2, "--train-iters", 10, *text, "--outdir", "out").steps(), whole[8:], "the steps after the restart")


@scenario
def under_ezpz_launch_a_dead_host_is_swapped_and_no_loss_changes(context):
    """The real workload under the real launcher: both ranks of a host die, the host is swapped, the losses are the unbroken run's."""
    unbroken = trained(context, 4, "--train-iters", 14).steps()
    (context.dir / "hosts.txt").write_text("sim1\nsim2\nsim3\n")
    argv = [context.ezpz, "launch", "--auto-retry", "--launcher", "local", "--hostfile", "hosts.txt", "--nhosts", 2, "--ppn", 2,
            "--log-dir", "logs", "--", context.ezpz.parent / "ezpz-train", *SMALL, "--train-iters", 14, "--outdir", "out",
            "--save-interval", 4, "--fault", "kill@10:rank=2,kill@10:rank=3"]
    done = subprocess.run(list(map(str, argv)), env=clean_environment(context), capture_output=True, timeout=TIME_LIMIT_S, cwd=context.dir)
    said = (done.stdout + done.stderr).decode(errors="replace")
    check_equal(done.returncode, 0, f"exit code; it said {said[-3000:]}")
    for rank in (2, 3):
        check((context.dir / f"out/FAULT-kill-step-10-rank-{rank}-attempt-1").exists(), f"rank {rank} was not killed: {said[-2000:]}")
    check("resumed from checkpoint step=8 " in said, f"it said {said[-3000:]}")
    losses = {int(n): float(loss) for n, loss, _ in STEP.findall(said)}
    check_equal(losses, {n: loss for n, loss, _ in unbroken}, "the losses")
    run, = (context.dir / "logs").glob("failover-*")
    told = [str(context.ezpz), "export-amsc", str(run), "--config", "tiny", "--system", "Lab", "--gpus", "4", "--force"]
    row = subprocess.run(told, env=clean_environment(context), capture_output=True, text=True, timeout=TIME_LIMIT_S, cwd=context.dir)
    check_equal(row.returncode, 0, f"exit code of export-amsc; it said {row.stderr}")
    names, values = list(csv.reader(row.stdout.splitlines()))
    cells = dict(zip(names, values))
    check_equal((cells["nodes"], cells["status"], cells["steps"], cells["final_loss"]),
                ("2", "pass", "14", f"{unbroken[-1][1]:.6f}"), "the row")


@scenario
def what_cannot_be_is_refused(context):
    """One line that says what is wrong, exit 2, before anything is computed."""
    for words, env, piece in [
        (["--model", "no-such"], {}, "no-such"),
        (["--transport", "ucx"], {}, "gloo"),
        (["--tp", "2"], {}, "--tp"),
        (["--tp", "4"], {}, "kv heads"),
        (["--n-heads", "3"], {}, "n-heads"),
        (["--lr", "-1"], {}, "--lr"),
        (["--save-interval", "5"], {}, "--outdir"),
        (["--export", "x"], {}, "--outdir"),
        (["--outdir", "o", "--export", str(context.ezpz.parent)], {}, "not empty"),
        (["--lora-dropout", "1"], {}, "--lora-dropout"),
        (["--lora-target", "head"], {}, "attn,mlp"),
        (["--dp-shard", "2"], {}, "--dp-shard"),
        (["--fault", "kill"], {}, "no @"),
        (["--fault", "burn@3"], {}, "no such fault"),
        (["--fault", "kill@3:rank=x"], {}, "not a number"),
        (["extra"], {}, "extra"),
        (SMALL, {"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
        (SMALL, {"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 of only 2"),
        (SMALL, {"RANK": "x", "WORLD_SIZE": "2"}, "RANK"),
    ]:
        done = subprocess.run([str(context.ezpz), "train", *words], env={**clean_environment(context), **env}, capture_output=True,
                              timeout=TIME_LIMIT_S, cwd=context.dir)
        said = done.stderr.decode()
        check_equal((done.returncode, done.stdout, said.count("\n")), (2, b"", 1), f"{words} {env}: {said}")
        check(piece in said, f"{words} {env} should say {piece!r}: {said}")


if __name__ == "__main__":
    sys.exit(main("train"))
