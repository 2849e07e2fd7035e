"""Models of PyTorch that write into inputs and buffers: tensors that share memory with these are refused, no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.support.errors import CompileError


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def kinds(torch: Any) -> Any:
    """Modules that write into an input, into two, and into a buffer."""

    class Kinds:
        class Input(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = torch.nn.Parameter(torch.full((4,), 2.0))

            def forward(self, x: Any, y: Any) -> Any:
                x.add_(1)
                return y * self.scale

        class Returned(torch.nn.Module):
            def forward(self, x: Any, y: Any) -> Any:
                y.mul_(3)
                return x.add_(y)

        class Buffer(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("total", torch.zeros(4))

            def forward(self, x: Any) -> Any:
                self.total.add_(x)
                return self.total * x

        class TwoNames(torch.nn.Module):
            def __init__(self, second: Any) -> None:
                super().__init__()
                self.register_buffer("total", torch.arange(8.0))
                self.register_buffer("rest", second(self.total))

            def forward(self, x: Any) -> Any:
                self.total.add_(x)
                return self.rest * 2

    return Kinds


@pytest.fixture(scope="module")
def compiled(torch: Any, kinds: Any) -> Any:
    """Writes into `x`."""
    return weft.compile(torch.export.export(kinds.Input(), (torch.ones(4), torch.ones(4))))


REFUSED = r"input '{}': expected a tensor that shares no memory with others, since the model writes it, got one that "


def test_an_input_that_is_written_overlaps_another(torch: Any, compiled: Any) -> None:
    both, numbers = torch.ones(4), np.arange(8, dtype=np.float32)
    pairs: list[tuple[Any, Any]] = [
        (both, both),
        (both, torch.from_numpy(both.numpy())),
        (both, torch.from_dlpack(both)),
        (torch.arange(8.0)[:4], torch.from_numpy(numbers)[:4]),
        (torch.from_numpy(numbers[:4]), torch.from_numpy(numbers[3:7])),
        (torch.from_numpy(numbers[::2]), torch.from_numpy(numbers[2:6])),
    ]
    for x, y in [*pairs[:3], *pairs[4:]]:
        before = x.clone(), y.clone()
        with pytest.raises(ValueError, match=REFUSED.format("x") + r"overlaps input 'y'"):
            compiled(x, y)
        assert torch.equal(x, before[0])
        assert torch.equal(y, before[1])
    x, y = pairs[3]
    assert torch.equal(compiled(x, y), y * 2)
    assert torch.equal(x, torch.arange(8.0)[:4] + 1)


def test_views_that_share_no_element_are_right(torch: Any, compiled: Any) -> None:
    for x_part, y_part in [(slice(0, None, 2), slice(1, None, 2)), (slice(0, 4), slice(4, 8))]:
        room = torch.arange(8.0)
        assert torch.equal(compiled(room[x_part], room[y_part]), torch.arange(8.0)[y_part] * 2)
        assert torch.equal(room[x_part], torch.arange(8.0)[x_part] + 1)


def test_inputs_that_are_only_read_may_overlap(torch: Any) -> None:
    class Added(torch.nn.Module):
        def forward(self, x: Any, y: Any, z: Any) -> Any:
            z.add_(1)
            return x + y

    compiled = weft.compile(Added(), tuple(torch.ones(4) for _ in range(3)))
    room = torch.arange(8.0)
    assert torch.equal(compiled(room[:4], room[2:6], torch.ones(4)), room[:4] + room[2:6])
    with pytest.raises(ValueError, match=REFUSED.format("z") + r"overlaps input 'y'"):
        compiled(room[:4], room[2:6], room[4:])


def test_two_inputs_that_are_written(torch: Any, kinds: Any) -> None:
    compiled = weft.compile(kinds.Returned(), (torch.ones(4), torch.ones(4)))
    x, y = torch.ones(4), torch.ones(4)
    assert torch.equal(compiled(x, y), torch.full((4,), 4.0))
    assert x.tolist() == [4.0] * 4
    assert y.tolist() == [3.0] * 4
    with pytest.raises(ValueError, match=REFUSED.format("x") + r"overlaps input 'y'"):
        compiled(x, x)
    with pytest.raises(ValueError, match=r"'x': expected a tensor whose elements are at different places, got strides"):
        compiled(torch.ones(1).expand(4), y)


def test_tensors_without_elements_share_nothing(torch: Any, kinds: Any) -> None:
    rows = torch.export.Dim("rows", min=0, max=8)
    model = kinds.Returned()
    shapes = {"x": {0: rows}, "y": {0: rows}}
    compiled = weft.compile(model, (torch.ones(4), torch.ones(4)), dynamic_shapes=shapes)
    empty = torch.ones(4)[:0]
    assert compiled(empty, empty).shape == (0,)


def test_parameters_and_buffers_of_the_model(torch: Any, kinds: Any) -> None:
    model = kinds.Input()
    for params in ("constants", "arguments"):
        compiled = weft.compile(model, (torch.ones(4), torch.ones(4)), params=params)
        with pytest.raises(ValueError, match=REFUSED.format("x") + r"overlaps 'scale' of the model"):
            compiled(model.scale.data, torch.ones(4))
        assert compiled(torch.ones(4), model.scale.data).tolist() == [4.0] * 4
    counting = kinds.Buffer()
    compiled = weft.compile(counting, (torch.ones(4),))
    with pytest.raises(ValueError, match=r"'total' of the model: expected .* got one that overlaps input 'x'"):
        compiled(counting.total)
    assert compiled(torch.ones(4)).tolist() == [1.0] * 4
    assert compiled(torch.ones(4)).tolist() == [2.0] * 4


def test_buffers_that_share_memory_are_refused_when_compiled(torch: Any, kinds: Any) -> None:
    for second in (lambda total: total, lambda total: total[2:5], lambda total: total.view(2, 4)):
        with pytest.raises(CompileError, match=r"'(total|rest)' and '(total|rest)' of the model share memory"):
            weft.compile(kinds.TwoNames(second), (torch.ones(8),))
    compiled = weft.compile(kinds.TwoNames(lambda total: total.clone()), (torch.ones(8),))
    assert torch.equal(compiled(torch.ones(8)), torch.arange(8.0) * 2)


def test_graphs_of_torch_compile_run_on_inputs_that_overlap_as_traced(torch: Any) -> None:
    def step(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    def views(first: slice, second: slice) -> tuple[Any, Any]:
        room = torch.arange(8.0)
        return room[first], room[second]

    compiled = torch.compile(step, backend="weft")
    assert compiled(torch.ones(4), torch.ones(4)).tolist() == [2.0] * 4
    one = torch.ones(4)
    assert compiled(one, one).tolist() == [4.0] * 4  # PyTorch guards against the same tensor itself
    shared = r"'l_x_': .* otherwise, and it writes some: this one and 'l_y_' share memory now \(clone"
    with pytest.raises(ValueError, match=shared):
        compiled(*views(slice(0, 4), slice(2, 6)))
    with pytest.raises(ValueError, match=shared):
        compiled(one, torch.from_numpy(one.numpy()))
    assert torch.equal(compiled(*views(slice(0, None, 2), slice(1, None, 2))), torch.arange(8.0)[1::2] * 2)
    torch.compiler.reset()
    compiled = torch.compile(step, backend="weft")
    assert compiled(*views(slice(0, 4), slice(2, 6))).tolist() == [6, 8, 8, 10]
    with pytest.raises(ValueError, match=shared):
        compiled(*views(slice(0, 4), slice(3, 7)))
    with pytest.raises(ValueError, match=r"this one and 'l_y_' share memory no more"):
        compiled(torch.ones(4), torch.ones(4))
    torch.compiler.reset()


def _halves(x: Any) -> Any:
    return x[x.shape[0] // 2 :]


def _repeated(x: Any) -> Any:
    return x[:, :1].expand(x.shape[0], x.shape[1])


def _of_a_result(x: Any) -> Any:
    y = x + 1
    return y, y[:, :1].expand(x.shape[0], x.shape[1]), y[1:].t()


def _beside_a_result(x: Any) -> Any:
    return x * 2, x[:, x.shape[1] // 2 :], x


def _parts(x: Any) -> Any:
    first, second = x.split([1, x.shape[0] - 1])
    return second, first + 1


def _of_one_tensor(x: Any) -> Any:
    y = x * 2
    return y[1:].t(), y[:, 1:], y.split(2, 1)[0]


def _written(x: Any) -> Any:
    x.add_(1)
    return x[:, x.shape[1] - 2 :]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "function",
    [_halves, _repeated, _of_a_result, _beside_a_result, _parts, _of_one_tensor, _written],
    ids=lambda f: f.__name__,
)
def test_views_of_inputs_and_of_results(torch: Any, function: Any, dynamic: bool) -> None:
    """`torch.compile` makes views of its own tensors by the strides and the first elements of the outputs."""
    torch._dynamo.reset()
    fast = torch.compile(function, backend="weft", dynamic=dynamic)
    for shape in ((3, 4), (4, 6)) if dynamic else ((3, 4),):
        x = torch.arange(float(shape[0] * shape[1])).reshape(shape)
        other = x.clone()
        found, expected = fast(x), function(other)
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for one, wanted in pairs:
            assert torch.equal(one, wanted) and one.stride() == wanted.stride()
        assert torch.equal(x, other)
        (found[0] if isinstance(found, tuple) else found)[..., 0].add_(1)
        (expected[0] if isinstance(expected, tuple) else expected)[..., 0].add_(1)
        assert torch.equal(x, other)  # views share the memory of what they are views of
        if isinstance(found, tuple):
            assert all(map(torch.equal, found, expected))


@pytest.fixture(scope="module")
def images(torch: Any) -> Any:
    class Images(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleDict({str(rank): _convolution(torch, rank) for rank in (2, 3)})

        def forward(self, x: Any) -> Any:
            return torch.relu(self.layers[str(x.ndim - 2)](x))

    torch.manual_seed(0)
    return Images().eval()


def _convolution(torch: Any, rank: int) -> Any:
    return getattr(torch.nn, f"Conv{rank}d")(3, 4, 3, padding=1)


def _addresses(compiled: Any) -> list[int]:
    """The addresses of the arrays of calls, which are appended as calls are made."""
    function, found = compiled._function, list[int]()

    def noted(*arrays: Any) -> Any:
        found.extend(array.ctypes.data for array in arrays)
        return function(*arrays)

    noted.signature = function.signature
    compiled._function = noted
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rank", [2, 3])
def test_images_with_channels_last_are_not_copied(torch: Any, images: Any, rank: int) -> None:
    layout = (torch.channels_last, torch.channels_last_3d)[rank - 2]
    x = torch.randn(2, 3, *(5, 6, 4)[:rank]).to(memory_format=layout)
    compiled = weft.compile(images, (x,))
    addresses = _addresses(compiled)
    with torch.no_grad():
        for given in (x, x.contiguous()):
            torch.testing.assert_close(compiled(given), images(x), rtol=1e-5, atol=1e-5)
    assert addresses[0] == x.data_ptr() and len(addresses) == 2
    wrong = torch.randn(2, 3, *(5, 7, 4)[:rank]).to(memory_format=layout)
    with pytest.raises(ValueError, match=r"expected shape \(2, 3, 5, 6.*, got shape \(2, 3, 5, 7.*dimension 3 is 7"):
        compiled(wrong)
    with pytest.raises(ValueError, match=rf"expected rank {rank + 2} \(shape \(2, 3, 5, 6"):
        compiled(x[0])


@pytest.mark.slow
def test_layouts_of_symbolic_size_and_transposed_matrices(torch: Any, images: Any) -> None:
    class Product(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(5, 4).T)

        def forward(self, x: Any, y: Any) -> Any:
            y.add_(1)
            return x @ self.weight, x.transpose(0, 1) * 2

    rows = torch.export.Dim("rows", min=2, max=9)
    x = torch.randn(2, 3, 5, 6).to(memory_format=torch.channels_last)
    compiled = weft.compile(images, (x,), dynamic_shapes=({0: rows, 2: torch.export.Dim("height", min=4, max=8)},))
    other = torch.randn(3, 3, 7, 6).to(memory_format=torch.channels_last)
    addresses = _addresses(compiled)
    with torch.no_grad():
        torch.testing.assert_close(compiled(other), images(other), rtol=1e-5, atol=1e-5)
    assert addresses == [other.data_ptr()]
    with pytest.raises(ValueError, match=r"must be at most 8, got 9 \(axis 2 of 'x'\)"):
        compiled(torch.randn(2, 3, 9, 6))
    model, z = Product(), torch.randn(6, 3, 4).permute(1, 0, 2)
    for params in ("constants", "arguments"):
        written, expected = torch.zeros(4, 3).T, torch.zeros(4, 3).T
        compiled = weft.compile(model, (z, torch.zeros(4, 3).T), params=params)
        with torch.no_grad():
            found, wanted = compiled(z, written), model(z, expected)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(written, expected)


@pytest.mark.slow
def test_graphs_of_torch_compile_keep_layouts(torch: Any, images: Any) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(images, backend="weft")
    x = torch.randn(2, 3, 5, 6).to(memory_format=torch.channels_last)
    with torch.no_grad():
        for given in (x, x.contiguous()):
            found, expected = compiled(given), images(given)
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
            assert found.stride() == expected.stride()
