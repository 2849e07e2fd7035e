"""The architectures of known models, imported and compiled, against PyTorch: small ones, and whole ones (`slow`)."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import pytest
from tiers import first_tier

import weft

TOLERANCE = 1e-5
"""Greatest difference over the largest element of an output."""
SMALL = ["resnet", "bottlenecks", "mobilenet_v2", "mobilenet_v3", "efficientnet", "squeezenet", "vit", "convnext"]
SMALL += ["bert", "unet", "tagger", "shuffle", "windows"]
WHOLE = ["resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3", "efficientnet_b0", "squeezenet", "vit_b_16"]
WHOLE += ["convnext_t", "bert_base", "unet", "tagger"]


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def architectures(torch: Any) -> Any:
    return import_module("torch_architectures")


def difference(found: Any, wanted: Any) -> float:
    """Of outputs of the same structure, over the largest element of each."""
    pytree: Any = import_module("torch.utils._pytree")
    (leaves, spec), (expected, wanted_spec) = pytree.tree_flatten(found), pytree.tree_flatten(wanted)
    assert spec == wanted_spec
    apart = 0.0
    for leaf, other in zip(leaves, expected, strict=True):
        assert (leaf.shape, leaf.dtype) == (other.shape, other.dtype)
        apart = max(apart, float((leaf - other).abs().max() / other.abs().max().clamp(min=1e-30)))
    return apart


def check(torch: Any, architectures: Any, model: Any, inputs: Any, tolerance: float = TOLERANCE) -> None:
    torch.manual_seed(3)
    made, given = architectures.evaluated(model()), inputs()
    compiled = weft.compile(made, given)
    with torch.no_grad():
        for _ in range(2):
            assert difference(compiled(*given), made(*given)) < tolerance
            given = inputs()


@pytest.mark.parametrize("name", first_tier(SMALL, "windows"))
def test_small(torch: Any, architectures: Any, name: str) -> None:
    check(torch, architectures, *architectures.SMALL[name])


@pytest.mark.slow
def test_every_architecture_is_tested(architectures: Any) -> None:
    assert list(architectures.SMALL) == SMALL
    assert list(architectures.WHOLE) == WHOLE


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_whole(torch: Any, architectures: Any, name: str) -> None:
    check(torch, architectures, *architectures.WHOLE[name])


@pytest.mark.parametrize(
    "sizes",
    [
        (40, 16, 4, 2, 24, 1, 8),
        pytest.param((32000, 512, 8, 4, 1376, 8, 128), marks=pytest.mark.slow),
    ],
    ids=["small", "whole"],
)
def test_a_decoder_with_a_cache(torch: Any, architectures: Any, sizes: tuple[int, ...]) -> None:
    """Words one by one, those of the whole model behind a prompt, into a cache in buffers; in PyTorch all at once."""
    torch.manual_seed(3)
    model = architectures.Llama(*sizes).eval()
    words, first = torch.randint(0, sizes[0], (1, 7)), 4 if sizes[0] > 40 else 0
    with torch.no_grad():
        wanted = copy.deepcopy(model)(words, torch.arange(7))[0]
        if first:
            given = words[:, :first], torch.arange(first)
            assert difference(weft.compile(model, given)(*given)[0], wanted[:, :first]) < TOLERANCE
        step = weft.compile(model, (words[:, :1], torch.arange(1)))
        for at in range(first, 7):
            scores, best = step(words[:, at : at + 1], torch.tensor([at]))
            assert difference(scores, wanted[:, at : at + 1]) < TOLERANCE
            assert best.item() == wanted[0, at].argmax().item()


@pytest.mark.slow
def test_architectures_of_symbolic_size(torch: Any, architectures: Any) -> None:
    batch = torch.export.Dim("batch", min=1, max=4)
    side = torch.export.Dim("side", min=1, max=4)
    torch.manual_seed(3)
    for name, sizes, shapes in (
        ("resnet", ({0: batch},), [(1, 3, 32, 32), (3, 3, 32, 32)]),
        ("unet", ({2: 4 * side, 3: 8 * side},), [(1, 3, 8, 16), (1, 3, 16, 32)]),
    ):
        model = architectures.evaluated(architectures.SMALL[name][0]())
        example = torch.randn(2, 3, 32, 32) if name == "resnet" else torch.randn(1, 3, 12, 24)
        compiled = weft.compile(model, (example,), dynamic_shapes=sizes)
        with torch.no_grad():
            for shape in shapes:
                x = torch.randn(shape)
                assert difference(compiled(x), model(x)) < TOLERANCE
    with pytest.raises(ValueError, match=r"dimension 3, is 24, but the model was exported for 8 \* \w+, which is 16"):
        compiled(torch.randn(1, 3, 8, 24))
