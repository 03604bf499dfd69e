"""GPT-2 and Llama of examples/models beside Hugging Face's `transformers`, on random weights that `transformers` makes and saves.

    EIN=build/ein pytest tests/python/test_models.py

The programs run by the command line, as a user would run them, and everything is compared with what PyTorch computes: logits, the loss,
gradients of all weights, weights after steps of AdamW, and the tokens of greedy generation.
"""

import os
import pathlib
import subprocess

import numpy
import pytest
from conftest import optional

torch = optional("torch")
transformers = optional("transformers")
import safetensors.torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
EIN = os.path.abspath(os.environ.get("EIN", ROOT / "build" / "ein"))
VOCABULARY, PROMPT, MORE = 97, 9, 14


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=48, n_embd=32, n_layer=3, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        initializer_range=0.2, bos_token_id=0, eos_token_id=0))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=56, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=48, rms_norm_eps=1e-6, initializer_range=0.2))


class Case:
    """A model of `transformers`, its weights in a folder, and the program that reads them."""

    def __init__(self, name, folder):
        torch.manual_seed(1)
        self.name, self.folder = name, folder
        self.model = {"gpt2": gpt2, "llama": llama}[name]().eval()
        with torch.no_grad():  # biases and norms that are not 0 and 1, so that a mistake with them is seen
            for weight in self.model.parameters():
                if weight.dim() == 1:
                    weight += 0.1 * torch.randn_like(weight)
        self.model.save_pretrained(folder)
        self.text = torch.randint(0, VOCABULARY, (2, 12))
        self.prompt = torch.randint(0, VOCABULARY, (3, PROMPT))
        numpy.save(folder / "text.npy", self.text.numpy().astype("i4"))
        numpy.save(folder / "prompt.npy", self.prompt.numpy().astype("i4"))
        self.saved = safetensors.torch.load_file(folder / "model.safetensors")

    def run(self, *arguments):
        program = ROOT / "examples" / "models" / f"{self.name}.ein"
        done = subprocess.run([EIN, "run", str(program), *arguments], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def generated(self, end):
        with torch.no_grad():
            return self.model.generate(self.prompt, attention_mask=torch.ones_like(self.prompt), max_new_tokens=MORE, do_sample=False,
                                       eos_token_id=end, pad_token_id=end if end is not None else 0)


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def case(request, tmp_path_factory):
    return Case(request.param, tmp_path_factory.mktemp(request.param))


def test_program_is_short(case):
    lines = (ROOT / "examples" / "models" / f"{case.name}.ein").read_text().splitlines()
    assert len(lines) <= 150


def test_logits_and_loss(case):
    case.run("--in", "text=text.npy", "--out", "logits=logits.npy", "--out", "loss=loss.npy")
    expected = case.model(case.text, labels=case.text)
    logits = numpy.load(case.folder / "logits.npy")
    assert logits.shape == expected.logits.shape
    assert numpy.abs(expected.logits.detach().numpy()).max() > 1.0
    numpy.testing.assert_allclose(logits, expected.logits.detach().numpy(), atol=1e-4, rtol=0)
    assert abs(float(numpy.load(case.folder / "loss.npy")) - expected.loss.item()) < 1e-5


def test_gradients_of_all_weights(case):
    case.run("--in", "text=text.npy", "--out", "grads=grads.safetensors")
    case.model.zero_grad()
    case.model(case.text, labels=case.text).loss.backward()
    expected = {name: weight.grad for name, weight in case.model.named_parameters()}
    grads = safetensors.torch.load_file(case.folder / "grads.safetensors")
    assert sorted(grads) == sorted(case.saved)  # by their own names, a tensor for each layer
    for name, gradient in grads.items():
        scale = max(1.0, expected[name].abs().max().item())
        assert expected[name].abs().max() > 1e-4, name
        numpy.testing.assert_allclose(gradient.numpy(), expected[name].numpy(), atol=1e-4 * scale, rtol=1e-3, err_msg=name)


@pytest.mark.parametrize("steps", [1, 3])
def test_fine_tuning(case, steps):
    """AdamW as PyTorch has it: the same weights after one step and after three, which HF's own class can load."""
    case.run("--in", "text=text.npy", "--set", f"steps={steps}", "--set", "rate=0.01", "--out", "tuned=tuned.safetensors")
    model = type(case.model)(case.model.config)
    model.load_state_dict(case.model.state_dict())
    model.eval()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    least = {name: torch.full_like(weight, torch.inf) for name, weight in model.named_parameters()}
    for _ in range(steps):
        optimiser.zero_grad()
        model(case.text, labels=case.text).loss.backward()
        for name, weight in model.named_parameters():
            least[name] = torch.minimum(least[name], weight.grad.abs())
        optimiser.step()
    expected = model.state_dict()
    tuned = safetensors.torch.load_file(case.folder / "tuned.safetensors")
    assert sorted(tuned) == sorted(case.saved)
    compared = 0
    for name, weight in tuned.items():
        apart = (weight - expected[name]).abs()
        # Adam divides the gradient by its size. Where that is 0 but for rounding (a bias of all keys changes no attention), the step is
        # noise of length `rate`; everywhere else it is sharp.
        clear = least[name] > 1e-4
        compared += int(clear.sum())
        assert apart[clear].max() < 2e-5, name
        assert apart.max() < 0.03 * steps, name
    assert compared > 0.8 * sum(w.numel() for w in case.saved.values())
    model.load_state_dict(tuned, strict=case.name == "llama")  # GPT-2 saves its tied output weights once


def test_greedy_generation(case):
    case.run("--in", "prompt=prompt.npy", "--set", f"more={MORE}", "--set", "end=-1", "--out", "written=written.npy")
    written = numpy.load(case.folder / "written.npy").T
    assert written.tolist() == case.generated(None).tolist()


def test_generation_ends_at_the_end_token(case):
    """The end token is one that some prompt writes and not all of them write at once."""
    free = case.generated(None)[:, PROMPT:]
    end = int(free[0, 3])
    expected = case.generated(end)
    case.run("--in", "prompt=prompt.npy", "--set", f"more={MORE}", "--set", f"end={end}", "--out", "written=written.npy")
    written = numpy.load(case.folder / "written.npy").T
    assert (written == end).any()
    assert written[:, :expected.shape[1]].tolist() == expected.tolist()
    assert (written[:, expected.shape[1]:] == end).all()


def test_one_prompt_writes_what_it_writes_among_others(case):
    numpy.save(case.folder / "one.npy", case.prompt[1:2].numpy().astype("i4"))
    case.run("--in", "prompt=one.npy", "--set", f"more={MORE}", "--set", "end=-1", "--out", "written=one_written.npy")
    written = numpy.load(case.folder / "one_written.npy").T
    assert written.tolist() == case.generated(None)[1:2].tolist()


def test_a_layer_that_is_missing_is_named(case):
    folder = case.folder / "broken"
    folder.mkdir(exist_ok=True)
    layer = {"gpt2": "transformer.h.1.", "llama": "model.layers.1."}[case.name]
    safetensors.torch.save_file({k: v for k, v in case.saved.items() if not k.startswith(layer)}, folder / "model.safetensors")
    program = ROOT / "examples" / "models" / f"{case.name}.ein"
    done = subprocess.run([EIN, "check", str(program)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"but no `{layer}" in done.stderr and f"it has `{layer.replace('1', '2')}" in done.stderr
