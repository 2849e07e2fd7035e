"""Modules in training mode are refused if their results depend on it; torch.compile warns."""

import warnings
from typing import Any

import pytest

import weft

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn


class Functional(nn.Module):
    def forward(self, x: Any) -> Any:
        return nn.functional.dropout(x, 0.3)


class Recurrent(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 8, **options)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0]


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, self.drop, torch.sin, (x,))


IMAGES, ROWS = (2, 3, 8, 8), (3, 8, 8)
DEPENDENT = {
    "dropout": (lambda: nn.Dropout(0.1), IMAGES, "Dropout applies aten.dropout.default"),
    "dropout2d": (lambda: nn.Dropout2d(0.1), IMAGES, "Dropout2d applies aten.feature_dropout.default"),
    "alpha": (lambda: nn.AlphaDropout(0.1), IMAGES, "AlphaDropout applies aten.alpha_dropout.default"),
    "batch norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.Dropout(0.1)),
        IMAGES,
        r"module '1', a BatchNorm2d, applies aten.batch_norm.default \(and 1 more\)",
    ),
    "instance norm": (
        lambda: nn.InstanceNorm2d(3, track_running_stats=True),
        IMAGES,
        "InstanceNorm2d applies aten.instance_norm.default",
    ),
    "rrelu": (nn.RReLU, IMAGES, "RReLU applies aten.rrelu.default"),
    "functional": (Functional, IMAGES, r"Functional applies aten.dropout.default \(.*: return nn.functional.dropout"),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.1),
        ROWS,
        r"module 'self_attn', a MultiheadAttention, applies aten.scaled_dot_product_attention.default \(and 3 more\)",
    ),
    "lstm": (lambda: Recurrent(num_layers=2, dropout=0.2), ROWS, "module 'layer', a LSTM, applies aten.lstm.input"),
    "branch": (Branches, IMAGES, "Branches applies aten.dropout.default"),
}


@pytest.mark.parametrize("kind", DEPENDENT)
@pytest.mark.parametrize("function", (weft.from_torch, weft.compile))
def test_refused(kind: str, function: Any) -> None:
    make, shape, message = DEPENDENT[kind]
    model, x = make(), torch.rand(shape)
    name = "from_torch" if function is weft.from_torch else r"weft\.compile"
    with pytest.raises(weft.CompileError, match=f"{name}: the model is in training mode: {message}.*model.eval()"):
        function(model, (x,))
    weft.from_torch(model.eval(), (x,))


def frozen() -> Any:
    model = nn.Sequential(nn.BatchNorm2d(3))
    model[0].eval()
    return model


INDEPENDENT = {
    "convolution": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), IMAGES),
    "no dropout": (lambda: nn.Dropout(0.0), IMAGES),
    "no statistics": (lambda: nn.BatchNorm2d(3, track_running_stats=False), IMAGES),
    "instance norm": (lambda: nn.InstanceNorm2d(3), IMAGES),
    "frozen": (frozen, IMAGES),
    "lstm of one layer": (lambda: Recurrent(num_layers=1), ROWS),
    "attention without dropout": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0), ROWS),
    "dropout of a function": (lambda: Functional().eval(), IMAGES),
}


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_accepted(kind: str) -> None:
    """Modules in training mode whose results do not depend on it, and operators of training in evaluation mode."""
    make, shape = INDEPENDENT[kind]
    weft.from_torch(make(), (torch.rand(shape),))


def test_exported_programs_keep_their_mode() -> None:
    model, x = nn.BatchNorm2d(3), torch.rand(IMAGES)
    fast = weft.compile(torch.export.export(model, (x,)))
    assert torch.allclose(fast(x), model(x), atol=1e-5)


@pytest.mark.parametrize("is_grad", (True, False))
def test_backend_warns_without_gradients(is_grad: bool) -> None:
    """Graphs with gradients are those of a training loop."""
    torch._dynamo.reset()
    model, x = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), torch.rand(4, 8)
    message = "backend 'weft': a graph without gradients is in training mode: it applies batch_norm; call model.eval()"
    with warnings.catch_warnings(record=True) as found, torch.set_grad_enabled(is_grad):
        warnings.simplefilter("always")
        y = torch.compile(model, backend="weft")(x)
    expected = nn.functional.batch_norm(model[0](x), None, None, training=True)
    assert torch.allclose(y, expected, atol=1e-4)
    assert any(str(one.message).startswith(message) for one in found) is not is_grad
