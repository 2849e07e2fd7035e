"""Quantized programs of PyTorch against PyTorch: operators of `quantized_decomposed`, ATen's products with packed
weights, and models that PT2E and torchao quantized."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from xdsl.context import Context

import weft
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.graph_rewrite import GraphRewritePass
from weft.passes.graph.graph_simplify import GraphSimplifyPass
from weft.support.errors import CompileError

torch = pytest.importorskip("torch")
import_module("torch.ao.quantization.fx._decomposed")  # defines the operators
QD = torch.ops.quantized_decomposed


class Calls(torch.nn.Module):
    """A function of one input and constants."""

    def __init__(self, function: Any, *constants: Any) -> None:
        super().__init__()
        self.function = function
        self.constants = len(constants)
        for at, constant in enumerate(constants):
            self.register_buffer(f"c{at}", constant)

    def forward(self, x: Any) -> Any:
        return self.function(x, *(getattr(self, f"c{at}") for at in range(self.constants)))


def compare(function: Any, x: Any, *constants: Any, steps: int = 0, tolerance: float = 1e-5) -> None:
    """Equal types and shapes, and close values; integers differ by at most `steps`."""
    model = Calls(function, *constants)
    wanted = model(x)
    found = weft.compile(model, (x,))(x)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert one.shape == other.shape
        if other.dtype.is_floating_point or steps == 0:
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, check_dtype=False)
        else:
            assert one.dtype == other.dtype
            assert int((one.long() - other.long()).abs().max()) <= steps


def refused(match: str, function: Any, x: Any, *constants: Any) -> None:
    with pytest.raises(CompileError, match=match):
        weft.from_torch(Calls(function, *constants), (x,))


def floats(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def integers(*shape: int, low: int = -128, high: int = 128, dtype: Any = torch.int8) -> Any:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


I8, U8 = torch.int8, torch.uint8
SCALES, ZEROS = floats(6).abs() + 0.01, integers(6, low=-9, high=9, dtype=torch.int64)
GROUP_SCALES, GROUP_ZEROS = floats(6, 4).abs() + 0.01, integers(6, 4, low=-9, high=9, dtype=torch.int32)


@pytest.mark.parametrize(
    "dtype, low, high",
    [(I8, -128, 127), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((U8, 0, 127), (torch.int16, -9, 9)))],
)
def test_numbers_of_one_scale(dtype: Any, low: int, high: int) -> None:
    compare(lambda x: QD.quantize_per_tensor(x, 0.037, 5, low, high, dtype), floats(5, 7), steps=1)
    q = integers(5, 7, low=max(low, -128), high=min(high, 127), dtype=dtype)
    compare(lambda q: QD.dequantize_per_tensor(q, 0.037, 5, low, high, dtype), q)
    scale, zero = torch.tensor([0.05], dtype=torch.float64), torch.tensor([3])
    compare(
        lambda x, s, z: QD.quantize_per_tensor.tensor(x, s, z, low, high, dtype), floats(5, 7), scale, zero, steps=1
    )
    compare(
        lambda q, s, z: QD.dequantize_per_tensor.tensor(q, s, z, low, high, dtype, out_dtype=torch.float32),
        q, scale, zero,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("axis", (0, 1))
def test_numbers_of_a_scale_for_each_channel(axis: int) -> None:
    shape = (6, 5) if axis == 0 else (3, 6, 2)
    compare(
        lambda x, s, z: QD.quantize_per_channel(x, s, z, axis, -127, 127, I8), floats(*shape), SCALES, ZEROS, steps=1
    )
    q = integers(*shape)
    compare(lambda q, s, z: QD.dequantize_per_channel(q, s, z, axis, -128, 127, I8), q, SCALES, ZEROS)
    compare(lambda q, s: QD.dequantize_per_channel(q, s, None, axis, -128, 127, I8), q, SCALES)
    compare(lambda x, s, z: QD.fake_quant_per_channel(x, s, z, axis, -128, 127), floats(*shape), SCALES, ZEROS.int())


def test_numbers_of_a_scale_for_each_group() -> None:
    compare(
        lambda x, s, z: QD.quantize_per_channel_group(x, s, z, -8, 7, I8, 8),
        floats(6, 32), GROUP_SCALES, GROUP_ZEROS, steps=1,
    )  # fmt: skip
    q = integers(6, 32, low=-8, high=8)
    compare(
        lambda q, s, z: QD.dequantize_per_channel_group(q, s, z, -8, 7, I8, 8, torch.float32),
        q, GROUP_SCALES, GROUP_ZEROS,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ("choose_qparams_per_token", "choose_qparams_per_token_asymmetric"))
def test_numbers_of_a_scale_for_each_row(name: str) -> None:
    def rounded(x: Any) -> Any:
        scale, zero = getattr(QD, name)(x, I8)
        q = QD.quantize_per_token(x, scale, zero, -128, 127, I8)
        return scale.float(), zero.long(), q, QD.dequantize_per_token(q, scale, zero, -128, 127, I8, torch.float32)

    model, x = Calls(rounded), floats(3, 5, 9)
    wanted, found = model(x), weft.compile(model, (x,))(x)
    for at in (0, 1):
        torch.testing.assert_close(found[at], wanted[at])
    assert int((found[2].long() - wanted[2].long()).abs().max()) <= 1
    torch.testing.assert_close(found[3], wanted[3], rtol=0, atol=float(wanted[0].max()) * 1.001)


@pytest.mark.slow
@pytest.mark.parametrize("name, dtype", [("choose_qparams", I8), ("choose_qparams_symmetric", U8)])
def test_parameters_of_a_tensor(name: str, dtype: Any) -> None:
    low, high = (-128, 127) if dtype == I8 else (0, 255)
    compare(lambda x: getattr(QD, name).tensor(x, low, high, 1e-5, dtype), floats(4, 5), steps=1)
    compare(lambda x: getattr(QD, name).tensor(x, low, high, 1e-5, dtype), torch.zeros(4, 5), steps=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_products_with_packed_weights() -> None:
    depth, columns, group = 64, 32, 32
    q, x = integers(columns, depth, low=0, high=16, dtype=torch.int32), floats(3, depth)
    parameters = floats(depth // group, columns, 2)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(q, 1)

    def product(x: Any, packed: Any, parameters: Any) -> Any:
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, parameters)

    compare(product, x, packed, parameters, tolerance=2e-4)
    compare(
        lambda x, q, p: product(x, torch.ops.aten._convert_weight_to_int4pack_for_cpu(q, 1), p),
        x, q, parameters, tolerance=2e-4,
    )  # fmt: skip
    text = str(weft.from_torch(Calls(product, packed, parameters), (x,)))
    assert "tensor<32x64xi8>" in text
    eight = integers(columns, depth)
    scales = (floats(columns).abs() + 0.1).bfloat16()
    compare(torch.ops.aten._weight_int8pack_mm, floats(3, depth).bfloat16(), eight, scales, tolerance=2e-2)
    compare(torch.ops.aten._int_mm, integers(32, depth), integers(depth, 16))


def define_embeddings() -> Any:
    """The embeddings of ExecuTorch, which defines them in this library."""
    library = torch.library.Library("quantized_decomposed", "FRAGMENT")
    for name, per_byte in (("embedding_byte", 1), ("embedding_4bit", 2)):
        library.define(
            f"{name}(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
            "int weight_quant_max, Tensor indices) -> Tensor"
        )

        def run(w: Any, s: Any, z: Any, low: int, high: int, at: Any, per_byte: int = per_byte) -> Any:
            if per_byte == 2:
                halves = torch.stack((w.div(16, rounding_mode="trunc"), w.remainder(16)), dim=-1)
                w = halves.view(w.shape[0], -1).view(I8).add(-8)
            size = w.shape[1] // (s.shape[1] if s.dim() == 2 else 1)
            whole = QD.dequantize_per_channel_group(w, s, z, low, high, w.dtype, size, s.dtype)
            return torch.ops.aten.embedding.default(whole, at)

        library.impl(name, run, "CompositeExplicitAutograd")
        library.impl(
            name,
            lambda w, s, z, low, high, at, n=per_byte: s.new_empty((*at.shape, w.shape[1] * n)),
            "Meta",
        )
    return library


@pytest.mark.slow
def test_embeddings() -> None:
    library = define_embeddings()
    at = torch.tensor([[0, 5], [2, 2]])
    zeros = GROUP_ZEROS.to(I8)
    compare(
        lambda x, w, s, z: QD.embedding_byte(w, s, z, -128, 127, x),
        at,
        integers(6, 32, low=-99, high=99),
        GROUP_SCALES,
        zeros,
    )
    compare(lambda x, w, s: QD.embedding_byte(w, s, None, -128, 127, x), at, integers(6, 32), SCALES)
    packed = integers(6, 16, low=0, high=256, dtype=U8)
    compare(lambda x, w, s, z: QD.embedding_4bit(w, s, z, -8, 7, x), at, packed, GROUP_SCALES, zeros)
    text = str(weft.from_torch(Calls(lambda x, w, s: QD.embedding_4bit(w, s, None, -8, 7, x), packed, SCALES), (at,)))
    assert "tensor<6x16xui8>" in text and "tensor<6x32x" not in text
    del library


def test_refused_parameters() -> None:
    x, bad = floats(6, 32), SCALES.clone()
    bad[3] = float("nan")
    refused(
        r"the scale must be finite and above 0, is 0\.0", lambda x: QD.quantize_per_tensor(x, 0.0, 0, -128, 127, I8), x
    )
    refused(
        r"dequantize_per_channel.*: the scale\[3\] must be finite, is nan; node",
        lambda x, q, s: x + QD.dequantize_per_channel(q, s, None, 0, -128, 127, I8), x, integers(6, 32), bad,
    )  # fmt: skip
    refused(
        r"the scale\[0\] must be finite and above 0, is -",
        lambda x, s, z: QD.quantize_per_channel(x, s, z, 0, -128, 127, I8), x, -SCALES, ZEROS,
    )  # fmt: skip
    refused(
        "packed weights .*must be constants",
        lambda x, q, p: torch.ops.aten._weight_int4pack_mm_for_cpu(x, q + (x.sum() > 0), 32, p),
        x, torch.zeros(16, 16, dtype=U8), floats(1, 16, 2),
    )  # fmt: skip


def model_of_layers() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 96), torch.nn.ReLU(), torch.nn.Linear(96, 32)
    ).eval()


def torchao_configs() -> Any:
    q = import_module("torchao.quantization")
    group = q.PerGroup(32)
    return {
        "int8 weights": (q.Int8WeightOnlyConfig(), "bits = 8"),
        "int4 weights": (q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=group), "{group_size = 32"),
        "int8 data, int8 weights": (q.Int8DynamicActivationInt8WeightConfig(), 'out_dtype = "int32"'),
        "int8 data, int4 weights": (
            q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=group),
            "{group_size = 32",
        ),
    }


def rewritten(module: Any) -> str:
    """A module after the rewrites that look for integers."""
    for each in (GraphInferTypesPass(), GraphSimplifyPass(), GraphRewritePass(("quantized", "dequantized"))):
        each.apply(Context(), module)
    return str(module)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ("int8 weights", "int4 weights", "int8 data, int8 weights", "int8 data, int4 weights"))
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_models_of_torchao(name: str, dtype: Any) -> None:
    """Weights stay integers of the bits that they need."""
    torchao = pytest.importorskip("torchao.quantization")
    config, expected = torchao_configs()[name]
    model, x = model_of_layers().to(dtype), floats(5, 64).to(dtype)
    torchao.quantize_(model, config)
    with torch.no_grad():
        wanted = model(x)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},))
    found = weft.compile(program)(x)
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance * float(wanted.abs().max()))
    assert expected in rewritten(weft.from_torch(program))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_llama_of_transformers() -> None:
    """A decoder of two layers for any number of tokens."""
    transformers, torchao = pytest.importorskip("transformers"), pytest.importorskip("torchao.quantization")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    torchao.quantize_(model, torchao_configs()["int4 weights"][0])
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        wanted = model(ids).logits
        program = torch.export.export(model, (ids,), dynamic_shapes={"input_ids": {1: torch.export.Dim("n", min=2)}})
        found = weft.compile(program)(ids).logits
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_dynamic", (False, True))
def test_models_of_pt2e(is_dynamic: bool) -> None:
    """Models that the quantizer for x86 annotated: convolutions and products of bytes, static and dynamic."""
    quantizer = pytest.importorskip("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    steps = import_module("torchao.quantization.pt2e.quantize_pt2e")
    torch.manual_seed(0)
    model: Any = model_of_layers() if is_dynamic else torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(16, 8, 3),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 6 * 6, 10),
    ).eval()  # fmt: skip
    x = floats(4, 64) if is_dynamic else floats(2, 3, 16, 16)
    annotated = quantizer.X86InductorQuantizer()
    annotated.set_global(quantizer.get_default_x86_inductor_quantization_config(is_dynamic=is_dynamic))
    prepared = steps.prepare_pt2e(torch.export.export(model, (x,)).module(), annotated)
    for seed in range(4):
        prepared(floats(*x.shape, seed=seed))
    converted = steps.convert_pt2e(prepared)
    with torch.no_grad():
        wanted, exact = converted(x), model(x)
        program = torch.export.export(converted, (x,))
        found = weft.compile(program)(x)
    if not is_dynamic:
        assert rewritten(weft.from_torch(program)).count('out_dtype = "int32"') == 3
    error = float((found - wanted).abs().max())
    assert error <= 0.2 * float((wanted - exact).abs().max()) + 1e-5 * float(exact.abs().max())
