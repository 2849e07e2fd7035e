"""Programs of PyTorch with unbacked sizes: those that data decide when the program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import weft


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'weft[torch]'")


def exported(torch: Any, function: Callable[..., Any], arguments: Sequence[Any], shapes: Any = None) -> Any:
    class Model(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return function(*given)

    return torch.export.export(Model(), tuple(arguments), dynamic_shapes=shapes)


def check(torch: Any, function: Callable[..., Any], *calls: Sequence[Any], shapes: Any = None, **options: Any) -> None:
    """The compiled program computes what PyTorch does, on the arguments that it was exported with and on others."""
    compiled = weft.build(weft.from_torch(exported(torch, function, calls[0], shapes)), **options)["main"]
    for arguments in calls:
        wanted = [result.numpy() for result in function(*arguments)]
        found = compiled(*(argument.numpy() for argument in arguments))
        for one, other in zip(found if isinstance(found, tuple) else [found], wanted, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype, (one, other)
            np.testing.assert_allclose(one, other, rtol=1e-5)


def matrices(torch: Any) -> list[Any]:
    return [torch.tensor([[1.0, 0, -2], [0, 0, 3]]), torch.zeros(2, 3), torch.ones(2, 3), -torch.ones(2, 3)]


def test_masks(torch: Any) -> None:
    def function(x: Any) -> Any:
        positive = x[x > 0]
        rows = x[x[:, 0] >= 0]
        put = torch.ops.aten.index_put(x, [x > 0], positive * 3)
        return positive + 1, torch.masked_select(x, x[0] > 0), x[:, x[0] > 0], x[x[:, 0] > 0, 1], rows, put

    check(torch, function, *([x] for x in matrices(torch)))


@pytest.mark.slow
def test_masks_that_repeat_the_data(torch: Any) -> None:
    """PyTorch states that there are at most as many results as elements of the data."""
    check(torch, lambda x, mask: (torch.masked_select(x, mask),), *([x[0], x < 1] for x in matrices(torch)))


@pytest.mark.slow
def test_several_cuts_and_products(torch: Any) -> None:
    def function(x: Any) -> Any:
        places = torch.nonzero(x)
        found = x[places[:, 0], places[:, 1]]
        large = found[found > 0.5]
        rows = x[x.sum(1) > 0]
        return places, large, torch.cat([found, large]), (rows @ torch.ones(3, 4)).softmax(1), rows.sum(0)

    shapes = (({0: torch.export.Dim("n")},),)
    others = [[torch.randn(7, 3)], [torch.zeros(3, 3)]]
    check(torch, function, [matrices(torch)[0]], *others, shapes=shapes)


@pytest.mark.slow
def test_unique_and_repeated(torch: Any) -> None:
    def function(x: Any, counts: Any) -> Any:
        values, inverse, often = torch.unique(x, return_inverse=True, return_counts=True)
        rows, own = torch.unique(x, dim=0, return_inverse=True)
        return values, inverse, often, rows, own, torch.repeat_interleave(x, counts, dim=0)

    first, zeros, ones, _ = matrices(torch)
    numbers = [torch.tensor(pair) for pair in ([2, 3], [0, 0], [0, 4])]
    check(torch, function, *zip((first, zeros, ones), numbers, strict=True))


@pytest.mark.slow
def test_numbers_become_sizes(torch: Any) -> None:
    """`torch._check` states the bounds, which checked builds test."""

    def function(x: Any, count: Any) -> Any:
        number = count.item()
        torch._check(number >= 0)
        torch._check(number <= x.shape[0])
        return (
            torch.arange(number) * 2,
            x[:number].sum(0),
            torch.full((number, 2), 1.5),
            torch.bincount(count.reshape(1)),
        )

    x = torch.ones(4, 3)
    check(torch, function, *([x, torch.tensor(number)] for number in (2, 0, 4)))
    checked = weft.build(weft.from_torch(exported(torch, function, [x, torch.tensor(2)])), checked=True)["main"]
    with pytest.raises(ValueError, match=r"extent 'u0', which data decide.*, is 5, outside of 0 \.\. 4"):
        checked(x.numpy(), np.array(5))


def test_numbers_that_are_no_sizes_may_be_negative(torch: Any) -> None:
    program = exported(torch, lambda x, n: (x * n.item(),), [torch.ones(3), torch.tensor(2)])
    compiled = weft.build(weft.from_torch(program))["main"]
    np.testing.assert_array_equal(compiled(np.ones(3, np.float32), np.array(-2)), [-2, -2, -2])


def test_models_return_sizes(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            positive = x[x > 0]
            return positive, positive.shape[0], 2 * positive.shape[0] + 1

    found, size, other = weft.compile(Model(), (torch.randn(3, 4),))(torch.eye(3, 4))
    assert found.tolist() == [1.0, 1.0, 1.0] and (size, other) == (3, 7)
