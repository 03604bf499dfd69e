"""An attention layer written in Einlang inside a PyTorch training loop. It attends to earlier positions only, and less to
distant ones: how fast attention fades is learned for each head. The same layer in PyTorch learns the same weights."""

import einlang
import torch
from torch import nn

LAYER = """
let x: [f32; batch, time, model];
let query: [f32; head, key, model];
let key: [f32; head, key, model];
let value: [f32; head, feature, model];
let out: [f32; model, head, feature];
let fade: [f32; head];

let q[batch, head, time, key] = sum[model](x[batch, time, model] * query[head, key, model]);
let k[batch, head, past, key] = sum[model](x[batch, past, model] * key[head, key, model]);
let v[batch, head, past, feature] = sum[model](x[batch, past, model] * value[head, feature, model]);
let score[batch, head, time, past] = sum[key](q[batch, head, time, key] * k[batch, head, past, key])
    - exp(fade[head]) * ((time - past) as f32);
let top[batch, head, time] = max[past](score[batch, head, time, past] where past <= time);
let weight[batch, head, time, past] = if past <= time { exp(score[batch, head, time, past] - top[batch, head, time]) } else { 0.0 };
let total[batch, head, time] = sum[past](weight[batch, head, time, past]);
let mixed[batch, head, time, feature] =
    sum[past](weight[batch, head, time, past] * v[batch, head, past, feature]) / total[batch, head, time];
let y[batch, time, model] = sum[head, feature](mixed[batch, head, time, feature] * out[model, head, feature]);
"""
attention = einlang.torch.function(einlang.compile(LAYER, outputs=["y"], name="attention"))


def attention_in_pytorch(x, query, key, value, out, fade):
    q, k, v = (torch.einsum("btm,hkm->bhtk", x, w) for w in (query, key, value))
    position = torch.arange(x.shape[1])
    distance = position[:, None] - position[None, :]
    score = q @ k.transpose(-1, -2) - fade.exp()[:, None, None] * distance
    weight = score.masked_fill(distance < 0, -torch.inf).softmax(-1)
    return torch.einsum("bhtf,mhf->btm", weight @ v, out)


class Attention(nn.Module):
    def __init__(self, function, model, heads, size):
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList([nn.Parameter(0.3 * torch.randn(heads, size, model)) for _ in range(3)])
        self.out = nn.Parameter(0.3 * torch.randn(model, heads, size))
        self.fade = nn.Parameter(torch.linspace(-3, 0, heads))

    def forward(self, x):
        return self.function(x, *self.weights, self.out, self.fade)


class Model(nn.Module):
    def __init__(self, function, letters=8, model=16):
        super().__init__()
        self.embedding = nn.Embedding(letters, model)
        self.attention = Attention(function, model, heads=2, size=8)
        self.scores = nn.Linear(model, letters)

    def forward(self, text):
        x = self.embedding(text)
        return self.scores(x + self.attention(x))


def train(function, steps=100):
    """The next letter is the one two places back, plus one: a task that needs attention to a fixed distance."""
    torch.manual_seed(1)
    model = Model(function)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        text = torch.randint(0, 8, (32, 2)).repeat(1, 6) + torch.arange(12) // 2
        text = text % 8
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


ours, theirs = train(attention), train(attention_in_pytorch)
print(f"loss {ours[0]:.3f} → {ours[-1]:.3f}")
assert ours[-1] < 0.5 * ours[0]
worst = max(abs(a - b) for a, b in zip(ours[:50], theirs[:50]))
assert worst < 1e-4, worst
print(f"equal to PyTorch: the losses of the first 50 steps differ by at most {worst:.1e}")
