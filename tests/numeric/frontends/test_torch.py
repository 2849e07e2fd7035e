"""Models of PyTorch, imported and compiled, against PyTorch itself.

PyTorch takes two seconds to import, so that nothing imports it before a test runs.
"""

from __future__ import annotations

import copy
import operator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.support.errors import CompileError
from weft.support.user_functions import registered_names

MODELS = ["perceptron", "conv_block", "encoder", "tagger", "branches"]
GROUPS = 24
"""Parts in which the operators are tested."""
RANDOM = {"rand", "randn", "randperm", "rand_like", "randn_like", "randint", "bernoulli", "native_dropout"}
RANDOM |= {"cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "normal_functional", "poisson"}
RANDOM |= {"uniform", "randint_like"}
"""Their numbers are PyTorch's own."""
UNTESTED = {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided"} | RANDOM
UNTESTED |= {"_local_scalar_dense", "_scaled_dot_product_flash_attention_for_cpu"}

UNTESTED |= {"_unique2", "bincount", "masked_select", "nonzero", "nonzero_numpy", "repeat_interleave", "unique_dim"}
"""In `test_torch_data_sizes.py`."""
UNTESTED |= {"unique_consecutive"}
"""In `test_torch_special.py`."""
UNTESTED |= {"_convert_weight_to_int4pack", "_convert_weight_to_int4pack_for_cpu", "_int_mm", "_weight_int4pack_mm"}
UNTESTED |= {"_weight_int4pack_mm_for_cpu", "_weight_int8pack_mm"}
"""In `test_torch_quantized.py`."""


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def models(torch: Any) -> Any:
    torch.manual_seed(7)
    return import_module("torch_models")


def assert_same(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    """Equal structures, element types and shapes, and close values."""
    import_module("torch").testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


# The first tier


@pytest.mark.slow
def test_a_model_of_symbolic_size_and_inputs_that_it_refuses(torch: Any, models: Any) -> None:
    model = models.Perceptron().eval()
    rows = torch.export.Dim("rows", min=2, max=8)
    compiled = weft.compile(model, (torch.randn(3, 20),), dynamic_shapes={"x": {0: rows}})
    x = torch.randn(20, 8).T
    with torch.no_grad():
        assert_same(compiled(x), model(x))
        assert_same(compiled(x[:1]), model(x[:1]))
    with pytest.raises(ValueError, match=r"must be at most 8, got 9 \(axis 0 of 'x'\): PyTorch exported"):
        compiled(torch.randn(9, 20))
    with pytest.raises(ValueError, match=r"argument 1 \('x'\): expected shape"):
        compiled(torch.randn(4, 21))
    with pytest.raises(TypeError, match=r"input 'x': expected a dense tensor of float32 on the CPU, got float64"):
        compiled(torch.randn(4, 20).double())
    with pytest.raises(TypeError, match=r"input 'x': expected a dense tensor of float32 on the CPU, got int"):
        compiled(3)
    with pytest.raises(TypeError, match=r"the model takes 1 inputs, got 2"):
        compiled(x, x)
    with pytest.raises(TypeError, match=r"the inputs are \(\*, z=\*\), but the model was exported with \(\*\)"):
        compiled(x, z=x)


@pytest.mark.filterwarnings("ignore")
def test_tensors_that_hold_no_array_are_refused_by_name(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x * 2 + y

    x, rows = torch.randn(4, 4), torch.export.Dim("rows", min=1, max=64)
    compiled = weft.compile(Model(), (x, torch.zeros(4, 4)), dynamic_shapes={"x": {0: rows}, "y": {0: rows}})
    for wrong, told in {
        "complex64": x.to(torch.complex64),
        "float8_e4m3fn": x.to(torch.float8_e4m3fn),
        "one of layout sparse_coo": x.to_sparse(),
        "one of layout sparse_csr": x.to_sparse_csr(),
        "one on meta": x.to("meta"),
        "one of quantized layout": torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
        "one of nested layout": torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)]),
    }.items():
        for name, args in (("x", (told, x)), ("y", (x, told))):
            message = f"input '{name}': expected a dense tensor of float32 on the CPU, got {wrong}"
            with pytest.raises(TypeError, match=message):
                compiled(*args)
    with pytest.raises(TypeError, match="input 'x': Tensor has no array"):
        compiled(torch._efficientzerotensor((4, 4)), x)
    imaginary = torch.randn(4, 4, dtype=torch.complex64).conj().imag  # a view that negates
    for right in (imaginary, torch._neg_view(x), x.T, x.clone().requires_grad_(), torch.randn(8, 8)[::2, ::2]):
        assert_same(compiled(right, x), right.detach() * 2 + x)
    for inputs, message in (
        ((x.to(torch.complex64), x), "'x' has elements of type complex64, which weft does not have"),
        ((3, 4), "the model returns and writes no tensor"),
    ):
        with pytest.raises(CompileError, match=f"from_torch: {message}"):
            weft.compile(Model(), inputs)


def test_all_that_is_not_supported_is_one_error(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = torch.linalg.ldl_factor(torch.outer(x, x)).LD
            z = torch.tan(torch.fft.rfft(x)).abs()
            again = torch.linalg.ldl_factor(y)
            return again.LD, z * 2, torch.linalg.ldl_solve(again.LD, again.pivots, y)

    program = torch.export.export(Model(), (torch.randn(4),))
    with pytest.raises(CompileError) as caught:
        weft.from_torch(program)
    message = str(caught.value)
    assert "3 operators are not supported" in message
    assert "aten.linalg_ldl_factor_ex.default (2 times); node" in message
    assert f"{__file__}:" in message and "y = torch.linalg.ldl_factor(torch.outer(x, x)).LD" in message
    assert "aten.tan.default: complex numbers" in message
    assert "aten.linalg_ldl_solve.default; node" in message
    assert "fallback=True" not in message  # the complex tangent remains refused
    with pytest.raises(TypeError, match="exported on example inputs"):
        weft.from_torch(Model())
    with pytest.raises(TypeError, match=r"expected a torch\.export\.ExportedProgram, .* got 3 of type int"):
        weft.from_torch(3)
    with pytest.raises(TypeError, match="has its example inputs"):
        weft.from_torch(program, (torch.randn(4),))
    with pytest.raises(CompileError, match="params is 'constants' or 'arguments', got 'all'"):
        weft.from_torch(program, params="all")


def test_fallback_is_named_with_its_cost(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = torch.linalg.ldl_factor(torch.outer(x, x)).LD
            return torch.relu(torch.linalg.ldl_factor(y).LD)

    before = registered_names()
    with pytest.raises(CompileError) as caught:
        weft.from_torch(torch.export.export(Model(), (torch.randn(4),)))
    assert str(caught.value).splitlines()[-2:] == [
        "weft.torch.register adds a converter",
        "fallback=True imports the model: PyTorch runs 2 of 5 operators (aten.linalg_ldl_factor_ex.default 2 times). "
        "They read and write 312 B of the 568 B that operators do. Each is a call of Python, nothing is fused across "
        "it, and the program cannot be exported [torch.unsupported-operator]",
    ]
    assert registered_names() == before


def test_sample_of_operators(torch: Any) -> None:
    names = ["aten.add.Tensor", "aten.sum.dim_IntList", "aten.slice.Tensor", "aten.select_scatter.default"]
    check_operators(names, compiled=False)
    with pytest.raises(CompileError, match=r"'aten.add.Tensor' has a converter already"):
        weft.torch.register("aten.add.Tensor")(lambda cx, x: x)
    with pytest.raises(CompileError, match=r"an operator is named 'library.name.overload', got 'aten.add'"):
        weft.torch.register("aten.add")(lambda cx, x: x)


# Operators, one by one


class Program:
    """Calls of operators as one graph function: their tensors are its parameters, their results its results."""

    def __init__(self) -> None:
        self.importing = import_module("weft.frontends.torch.importing")
        self.symbols = import_module("weft.frontends.torch.symbols")
        self.torch = import_module("torch")
        self.params: list[Any] = []
        self.arrays: list[Any] = []
        self.graphs: list[tuple[str, Any, dict[Any, Any], list[Any]]] = []

    def add(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A call, and a graph of PyTorch with it alone."""
        graph, inputs = self.torch.fx.Graph(), dict[Any, Any]()

        def traced(value: Any) -> Any:
            if isinstance(value, list):
                return [traced(item) for item in value]
            if not isinstance(value, self.torch.Tensor):
                return value
            node = graph.placeholder(f"x{len(inputs)}")
            node.meta["val"] = value
            dtype = self.symbols.dtype_name(value.dtype)
            inputs[node] = G.var(f"p{len(self.params)}", tuple(value.shape), dtype)
            self.params.append(inputs[node])
            self.arrays.append(self.importing.array_of(value))
            return node

        _, packet, kind = name.split(".")
        target = getattr(getattr(self.torch.ops.aten, packet), kind)
        node = graph.call_function(target, tuple(map(traced, args)), {k: traced(v) for k, v in keywords.items()})
        wanted = node.meta["val"] = target(*args, **keywords)
        several = isinstance(wanted, tuple | list)
        results = list(wanted) if several else [wanted]
        if any(word in name for word in ("embedding_bag", "adaptive_max_pool")):
            results = results[:1]
        nodes = [graph.call_function(operator.getitem, (node, at)) for at in range(len(results))] if several else [node]
        graph.output(tuple(nodes))
        self.graphs.append((name, self.torch.fx.GraphModule(self.torch.nn.Module(), graph), inputs, results))

    def found(self, *, compiled: bool) -> list[tuple[str, Any, Any]]:
        """Operator, the array that the program gives, and PyTorch's result, for each result."""
        builder = G.BlockBuilder()
        importer, outputs, expected = self.importing.Importer(builder, {}), list[Any](), list[tuple[str, Any]]()
        with builder.function("main", self.params):
            for name, module, inputs, results in self.graphs:
                outputs += importer.convert(module, inputs)
                expected += [(name, result) for result in results]
            assert not importer.problems, importer.problems
            builder.emit_func_output(outputs)
        if compiled:
            arrays = weft.build(builder.get(), cache=False)["main"](*self.arrays)
        else:
            arrays = weft.Interpreter(builder.get()).call("main", *self.arrays)
        arrays = arrays if isinstance(arrays, tuple) else (arrays,)
        return [(name, array, result) for (name, result), array in zip(expected, arrays, strict=True)]


def check_operators(names: list[str], *, compiled: bool = True) -> None:
    torch, cases = import_module("torch"), import_module("torch_operator_cases").CASES
    torch.manual_seed(11)
    program = Program()
    for name in names:
        for args, keywords in cases[name]():
            program.add(name, args, keywords)
    wrong: list[str] = []
    for name, array, wanted in program.found(compiled=compiled):
        narrow = wanted.dtype in (torch.float16, torch.bfloat16)
        tolerance = {torch.float16: 4e-3, torch.bfloat16: 2e-2, torch.float64: 1e-6}.get(wanted.dtype, 2e-5)
        expected = np.asarray((wanted.float() if narrow else wanted).resolve_neg().numpy())
        if wanted.dtype == torch.bfloat16 and array.itemsize == 2:
            array = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).float().numpy()
        if array.shape != expected.shape or (not narrow and array.dtype != expected.dtype):
            wrong.append(f"{name}: {array.dtype}{array.shape}, PyTorch {expected.dtype}{expected.shape}")
        elif not np.allclose(array.astype(expected.dtype), expected, rtol=tolerance, atol=tolerance, equal_nan=True):
            wrong.append(f"{name}: {array}\nPyTorch: {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_operators(torch: Any, group: int) -> None:
    check_operators(sorted(import_module("torch_operator_cases").CASES)[group::GROUPS])


@pytest.mark.slow
def test_every_converter_has_a_case(torch: Any) -> None:
    cases = import_module("torch_operator_cases").CASES
    names = {name for name in weft.torch.operators() if name.startswith("aten.")} - set(cases)
    assert {name for name in names if name.split(".")[1] not in UNTESTED} == set()


@pytest.mark.slow
def test_core_operators_are_supported(torch: Any) -> None:
    exporting = import_module("weft.frontends.torch.exporting")
    known = {*weft.torch.operators(), *map(str, exporting.decompositions())}
    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    packets = [packet for packet in packets if hasattr(packet, "overloads")]
    overloads = [getattr(packet, kind) for packet in packets for kind in packet.overloads()]
    core = {str(overload) for overload in overloads if torch.Tag.core in overload.tags}
    missing = {name for name in core - known if not name.startswith("aten.sym_")}
    assert missing <= {
        "aten._adaptive_avg_pool2d_backward.default",
        "aten.avg_pool2d_backward.default",
        "aten.convolution_backward.default",
        "aten._fft_c2r.default",  # complex operands have a table of their own
        "aten._fft_r2c.default",
        "aten.resize_.default",  # changes the size of its argument in place
    }
    assert len(core) - len(missing) >= 180


@pytest.mark.slow
def test_operators_that_pytorch_decomposes(torch: Any) -> None:
    F = torch.nn.functional

    class Model(torch.nn.Module):
        def forward(self, x: Any, y: Any, image: Any) -> Any:
            return (
                F.hardshrink(x),
                F.fold(F.unfold(image, 2), (5, 6), 2),
                torch.einsum("ij,kj->ik", x, y),
                F.pixel_shuffle(image, 2),
                torch.lerp(x, y, 0.3),
                F.instance_norm(image),
                F.cosine_similarity(x, y),
                torch.cdist(x, y),
                F.interpolate(image, scale_factor=2, mode="bicubic"),
                F.one_hot(torch.argmax(x, 1), 6),
                x.std(1),
                F.cross_entropy(x, torch.tensor([1, 0, 2])),
                torch.addcmul(x, y, y, value=0.5),
                F.rms_norm(x, (6,)),
                torch.aminmax(x),
                F.glu(x),
                F.selu(x) + F.softsign(y) + F.tanhshrink(x),
                torch.stack(torch.meshgrid(x[0], y[1], indexing="ij")),
                x.unfold(1, 3, 2),
                torch.repeat_interleave(x, 2, 1),
            )

    given = torch.randn(3, 6), torch.randn(3, 6), torch.randn(2, 4, 5, 6)
    model = Model()
    assert_same(weft.compile(model, given)(*given), model(*given), 3e-5)


# Models


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models(torch: Any, models: Any, name: str) -> None:
    kind, inputs = models.MODELS[name]
    model, given = kind().eval(), inputs()
    compiled = weft.compile(model, given)
    for _ in range(2):
        with torch.no_grad():
            assert_same(compiled(*given), model(*given))
        given = inputs()


@pytest.mark.slow
def test_a_decoder_with_a_cache_in_buffers(torch: Any, models: Any) -> None:
    model = models.Decoder().eval()
    plain, prompt, tokens = (
        copy.deepcopy(model),
        torch.randint(0, 20, (1, 4)),
        torch.export.Dim("tokens", min=2, max=12),
    )
    prefill = weft.compile(
        model, (prompt, torch.arange(4)), dynamic_shapes={"words": {1: tokens}, "places": {0: tokens}}
    )
    decode = weft.compile(model, (prompt[:, :1], torch.arange(1)))
    with torch.no_grad():
        for words, places, step in (
            (prompt, torch.arange(4), prefill),
            (torch.tensor([[3]]), torch.tensor([4]), decode),
            (torch.tensor([[7]]), torch.tensor([5]), decode),
            (torch.tensor([[1, 9]]), torch.tensor([6, 7]), prefill),
        ):
            assert_same(step(words, places), plain(words, places))
            assert_same((model.keys, model.values), (plain.keys, plain.values))


@pytest.mark.slow
def test_sizes_as_extents_bounds_and_factors(torch: Any, models: Any) -> None:
    half, columns, batch = (
        torch.export.Dim("half", min=2, max=32),
        torch.export.Dim("columns", min=2),
        torch.export.Dim("b"),
    )
    sizes = {"x": {0: 2 * half, 1: columns}, "y": {0: batch}, "scale": None}
    model = models.Sizes()
    compiled = weft.compile(model, (torch.randn(6, 4), torch.randn(3, 2)), {"scale": 3.0}, dynamic_shapes=sizes)
    for rows, width, extent in ((6, 4, 3), (8, 3, 2), (64, 2, 4)):
        given = torch.randn(rows, width), torch.randn(extent, 2)
        assert_same(compiled(*given, scale=3.0), model(*given, scale=3.0))
    y = torch.randn(3, 2)
    with pytest.raises(
        TypeError, match=r"the inputs are \(\*, \*\), but the model was exported with \(\*, \*, scale=\*\)"
    ):
        compiled(torch.randn(6, 4), y)
    with pytest.raises(ValueError, match=r"input 2 is 2\.0, but the model was exported with 3\.0"):
        compiled(torch.randn(6, 4), y, scale=2.0)
    with pytest.raises(ValueError, match=r"input 'x', dimension 0, is 7, .* exported for 2 \* \w+, which is 6"):
        compiled(torch.randn(7, 4), y, scale=3.0)
    with pytest.raises(ValueError, match=r"n // 2 must be at most 32, got 66 \(axis 0 of 'x'\): PyTorch exported"):
        compiled(torch.randn(66, 4), y, scale=3.0)


@pytest.mark.slow
def test_buffers_and_inputs_are_written(torch: Any, models: Any) -> None:
    model = models.Counter()
    plain, compiled = copy.deepcopy(model), weft.compile(model, (torch.randn(3), torch.zeros(3)))
    for _ in range(3):
        x, found, wanted = torch.randn(3), torch.zeros(3), torch.zeros(3)
        assert_same(compiled(x, found), plain(x, wanted))
        assert_same((found, model.mean, model.count), (wanted, plain.mean, plain.count))


@pytest.mark.slow
def test_parameters_as_arguments_follow_the_model(torch: Any, models: Any) -> None:
    model, x = models.Perceptron().eval(), torch.randn(3, 20)
    module = weft.from_torch(model, (x,), params="arguments")
    names = [argument.name_hint for argument in module.ops.first.body.block.args]
    assert names == ["x", "p_first_weight", "p_first_bias", "p_second_weight", "p_second_bias"]
    compiled = weft.compile(model, (x,), params="arguments")
    with torch.no_grad():
        assert_same(compiled(x), model(x))
        model.first.weight.mul_(2)
        assert_same(compiled(x), model(x))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_element_types(torch: Any, models: Any, dtype: str) -> None:
    kind = getattr(torch, dtype)
    model, x = models.Perceptron().eval().to(kind), torch.randn(3, 20).to(kind)
    compiled = weft.compile(model, (x,))
    with torch.no_grad():
        assert_same(compiled(x), model(x), 1e-9 if dtype == "float64" else 2e-2)


@pytest.mark.slow
def test_traced_graphs_and_converters_of_users(torch: Any) -> None:
    @torch.library.custom_op("weft_tests::exponential", mutates_args=(), schema="(Tensor x) -> Tensor")
    def exponential(x: Any) -> Any:
        return torch.linalg.matrix_exp(x)

    exponential.register_fake(torch.empty_like)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return torch.ops.weft_tests.exponential(torch.relu(self.layer(x))).reshape(-1) + 1

    model, x = Model().eval(), torch.randn(3, 4) / 2
    traced = torch.fx.symbolic_trace(model)
    with torch.no_grad():
        left = weft.compile(traced, x, fallback=True)
        assert_same(left(x), model(x))
    (call,) = left.in_torch
    assert (call.operator, call.reason, call.calls) == ("weft_tests.exponential.default", "it has no converter", 1)
    assert call.seconds > 0

    @weft.torch.register("weft_tests.exponential.default")
    def series(cx: Any, x: Any) -> Any:
        term, total = x, G.add(x, G.const(np.eye(3, dtype=np.float32)))
        for k in range(2, 20):
            term = G.multiply(G.matmul(term, x), 1 / k)
            total = G.add(total, term)
        return total

    try:
        with torch.no_grad():
            assert_same(weft.compile(traced, (x,))(x), model(x))
    finally:
        del import_module("weft.frontends.torch.converters").CONVERTERS["weft_tests.exponential.default"]


# torch.compile


@pytest.mark.slow
def test_backend_with_graph_breaks_and_symbolic_sizes(torch: Any) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            y = self.layer(x)
            y = y * 2 if y.sum() > 0 else y - 1
            torch._dynamo.graph_break()
            return y.T + 1, y.shape[0]

    model = Model()
    fast = torch.compile(model, backend=weft.torch.backend, dynamic=True)
    with torch.no_grad():
        for rows in (3, 5, 7, 2):
            x = torch.randn(rows, 4)
            found, wanted = fast(x), model(x)
            assert_same(found, wanted)
            assert found[0].stride() == wanted[0].stride()
        model.layer.weight.mul_(3)
        assert_same(fast(x), model(x))
    with pytest.raises(Exception, match="backend 'weft': there is no option 'parms', did you mean 'params'"):
        torch.compile(lambda x: x + 1, backend=weft.torch.backend, options={"parms": 1})(x)


@pytest.mark.slow
def test_backend_with_buffers_gradients_and_random_numbers(torch: Any, models: Any) -> None:
    model = models.Decoder().eval()
    plain, fast = copy.deepcopy(model), torch.compile(model, backend=weft.torch.backend)
    with torch.no_grad():
        for place in range(3):
            given = torch.tensor([[place + 4]]), torch.tensor([place])
            assert_same(fast(*given), plain(*given))
            assert_same(model.keys, plain.keys)
    model, x = models.Perceptron(), torch.randn(3, 20)
    torch.compile(model, backend=weft.torch.backend)(x).sum().backward()
    found = model.first.weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    assert_same(found, model.first.weight.grad)

    def noisy(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(3) + torch.rand(3)

    results: list[Any] = []
    for function in (torch.compile(noisy, backend=weft.torch.backend), noisy):
        torch.manual_seed(5)
        results.append(function(torch.ones(3)))
    assert_same(*results)


@pytest.mark.slow
def test_backend_has_a_name() -> None:
    found = [point.value for point in entry_points(group="torch_dynamo_backends") if point.name == "weft"]
    if not found:
        pytest.skip("weft was installed before it had the entry point")
    assert found == ["weft.driver.torch_backend:weft_backend"]
