#!/usr/bin/env python3
"""GPT-2 and Llama of examples/models beside PyTorch: tokens per second of generation, and the time of a training step.

    bench/models.py build/ein [--threads 1] [--repeat 3]

Both run on the same random weights of a small configuration, which `transformers` makes, with the same number of threads, in turns, so that
whatever else the machine does slows both. Needs torch, transformers, safetensors and numpy. The times of `ein` are those of its runs, without
compiling; those of PyTorch are taken after one run to warm up. A training step is one among many: for `ein` how much longer a run of nine steps
takes than one of a single step, an eighth of it, since that one also gets memory and copies the weights. The median of the runs counts.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    import torch
    import transformers
except ImportError as missing:
    sys.exit(f"bench/models.py needs numpy, torch, transformers and safetensors: {missing}")

MODELS = pathlib.Path(__file__).resolve().parent.parent / "examples" / "models"
HEADS, GROUPS, PROMPT, MORE, BATCH, TEXT, STEPS = 8, 2, 32, 128, 4, 128, 8


def make(name, folder):
    """The model of PyTorch, and a folder with its weights and the program for them."""
    torch.manual_seed(0)
    if name == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=8192, n_positions=512, n_embd=512, n_layer=6, n_head=HEADS, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
            bos_token_id=0, eos_token_id=0))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=8192, hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=HEADS,
            num_key_value_heads=GROUPS, max_position_embeddings=512))
    model.save_pretrained(folder)
    shutil.copy(MODELS / "decoder.ein", folder)
    program = (MODELS / f"{name}.ein").read_text()
    program = re.sub(r"const heads = \d+;", f"const heads = {HEADS};", program)
    program = re.sub(r"const groups = \d+;", f"const groups = {GROUPS};", program)
    (folder / f"{name}.ein").write_text(program)
    return model


def ein_seconds(ein, folder, name, arguments, threads, repeat):
    """The seconds of every run, as `ein bench` measures them: compiled once, run again and again."""
    command = [ein, "bench", f"{name}.ein", "--format", "json", "--no-peaks", "--threads", str(threads), "--repeat", str(repeat), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["runs"]


def torch_seconds(run, repeat):
    run()
    out = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        out.append(time.perf_counter() - begin)
    return out


def generation(ein, folder, name, model, threads, repeat):
    prompt = torch.randint(1, 8192, (1, PROMPT))
    numpy.save(folder / "prompt.npy", prompt.numpy().astype("i4"))

    def run():
        with torch.no_grad():
            model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=MORE, min_new_tokens=MORE, do_sample=False,
                           pad_token_id=0)
    model.eval()
    ours = ein_seconds(ein, folder, name, ["--in", "prompt=prompt.npy", "--set", f"more={MORE}", "--set", "end=-1", "--show", "written"],
                       threads, repeat)
    theirs = torch_seconds(run, repeat)
    return [MORE / statistics.median(x) for x in (ours, theirs)]


def training(ein, folder, name, model, threads, repeat):
    text = torch.randint(0, 8192, (BATCH, TEXT))
    numpy.save(folder / "text.npy", text.numpy().astype("i4"))
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.001)

    def run():
        optimiser.zero_grad()
        model(text, labels=text).loss.backward()
        optimiser.step()

    def ours(steps):
        return ein_seconds(ein, folder, name, ["--in", "text=text.npy", "--set", f"steps={steps}", "--set", "rate=0.001", "--show", "tuned"],
                           threads, 1)[0]
    model.train()
    run()
    pairs = []
    for _ in range(repeat):
        one, many = ours(1), ours(1 + STEPS)
        pairs.append(((many - one) / STEPS, statistics.median(torch_seconds(run, STEPS))))
    return [statistics.median(x) for x in zip(*pairs)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ein")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--repeat", type=int, default=3)
    given = arguments.parse_args()
    ein = str(pathlib.Path(given.ein).resolve())
    torch.set_num_threads(given.threads)
    print(f"6 layers of width 512, {given.threads} thread{'s' if given.threads > 1 else ''}, median of {given.repeat} runs; "
          f"PyTorch {torch.__version__}, transformers {transformers.__version__}")
    for name in ("gpt2", "llama"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            model = make(name, folder)
            ours, theirs = generation(ein, folder, name, model, given.threads, given.repeat)
            print(f"{name:6} generation of {MORE} tokens after {PROMPT}: {ours:7.1f} tokens/s, PyTorch {theirs:7.1f} tokens/s, "
                  f"ratio {ours / theirs:.2f}", flush=True)
            ours, theirs = training(ein, folder, name, model, given.threads, given.repeat)
            print(f"{name:6} training step of {BATCH} x {TEXT} tokens: {ours:7.3f} s, PyTorch {theirs:7.3f} s, "
                  f"ratio {theirs / ours:.2f}", flush=True)


if __name__ == "__main__":
    main()
