"""`relax.frontend.nn`: models as Python classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.ir.module import IRModule
from weft.tvm.relax import op as _op
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Expr, TensorStructInfo, Var, const

Tensor = Expr


class Parameter:
    """Exported functions take parameters after inputs."""

    def __init__(self, shape: Sequence[Any], dtype: str | None = None) -> None:
        self.shape, self.dtype = tuple(shape), dtype or "float32"
        self.expr: Var | None = None
        """During the export."""


def _value(value: Any) -> Any:
    if isinstance(value, Parameter):
        if value.expr is None:
            raise CompileError("a parameter has a value in forward(): call export_tvm")
        return value.expr
    given: Any = map(_value, items(value))
    return list(given) if isinstance(value, list) else tuple(given) if isinstance(value, tuple) else value


def _relax(name: str) -> Callable[..., Any]:
    function = _op.applied(name)
    return lambda *args, **options: function(*map(_value, args), **{k: _value(v) for k, v in options.items()})


def __getattr__(name: str) -> Callable[..., Any]:
    """`nn.op.relu(x)`, `nn.relu(x)`"""
    if name.startswith("__"):
        raise AttributeError(name)
    known = {"permute": "permute_dims", "unsqueeze": "expand_dims"}
    return _OPERATORS[name] if name in _OPERATORS else _relax(known.get(name, name))


op: Any = type("op", (), {"__getattr__": staticmethod(__getattr__)})()


class spec:
    """Types of inputs: `nn.spec.Tensor((1, "n"), "float32")`."""

    Tensor = TensorStructInfo


class Module:
    """A model: `__init__` creates parameters and parts, `forward` computes."""

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Includes parameters of parts: `linear.weight`."""
        for name, part in vars(self).items():
            if isinstance(part, Parameter):
                yield prefix + name, part
            elif isinstance(part, Module):
                yield from part.named_parameters(f"{prefix}{name}.")

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.forward(*args, **options)

    def forward(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def to(self, dtype: str) -> None:
        for _, parameter in self.named_parameters():
            parameter.dtype = dtype

    def export_tvm(
        self, spec: Mapping[str, Mapping[str, TensorStructInfo]], debug: bool = False
    ) -> tuple[IRModule, list[tuple[str, Parameter]]]:
        """The methods in `spec` as functions, and the parameters, which follow inputs."""
        builder, parameters = BlockBuilder(), list(self.named_parameters())
        for method, inputs in spec.items():
            given = {name: Var(name, info) for name, info in inputs.items() if name[:1] != "$"}
            for name, parameter in parameters:
                parameter.expr = Var(name.replace(".", "_"), TensorStructInfo(parameter.shape, parameter.dtype))
            try:
                with builder.function(
                    method, [*given.values(), *(p.expr for _, p in parameters if p.expr is not None)]
                ):
                    builder.emit_func_output([_value(part) for part in items(getattr(self, method)(**given))])
            finally:
                for _, parameter in parameters:
                    parameter.expr = None
        return builder.get(), parameters


class ModuleList(Module):
    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = list(modules)
        self.__dict__.update({str(at): part for at, part in enumerate(modules)})

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def forward(self, x: Any) -> Any:
        return reduce(lambda value, part: part(value), self.modules, x)


def _layer(forward: Callable[[Any, Any], Any]) -> Callable[[Callable[..., Mapping[str, Parameter | None]]], Any]:
    def layer(parameters: Callable[..., Mapping[str, Parameter | None]]) -> Any:
        signature = inspect.signature(parameters)

        def start(self: Module, *args: Any, **options: Any) -> None:
            given = signature.bind(*args, **options)
            given.apply_defaults()
            made = dict(parameters(*args, **options))
            vars(self).update({**{name: given.arguments[name] for name in given.arguments.keys() - made}, **made})

        described = {"__doc__": parameters.__doc__, "__module__": __name__}
        return type(parameters.__name__, (Module,), {"__init__": start, "forward": forward, **described})

    return layer


def _rows(size: Any, dtype: str | None, *, weight: bool = True, bias: bool = True) -> dict[str, Parameter | None]:
    return {key: Parameter((size,), dtype) if on else None for key, on in (("weight", weight), ("bias", bias))}


@_layer(lambda layer, x: _relax("linear")(x, layer.weight, layer.bias, layer.out_dtype))
def Linear(in_features: Any, out_features: Any, bias: bool = True, dtype: Any = None, out_dtype: Any = None) -> Any:
    """`x @ weight.T + bias`."""
    return _rows(out_features, out_dtype or dtype, bias=bias) | {
        "weight": Parameter((out_features, in_features), dtype)
    }


@_layer(lambda layer, x: _relax("take")(layer.weight, x, axis=0))
def Embedding(num: Any, dim: Any, dtype: str | None = None) -> Any:
    return {"weight": Parameter((num, dim), dtype)}


@_layer(lambda layer, x: op.layer_norm(x, layer.normalized_shape, layer.weight, layer.bias, layer.eps))
def LayerNorm(normalized_shape: int, eps: float = 1e-5, elementwise_affine: bool = True, dtype: Any = None) -> Any:
    """Rows minus their mean, divided by their standard deviation."""
    return _rows(normalized_shape, dtype, weight=elementwise_affine, bias=elementwise_affine)


def _groups(layer: Any, x: Any, channel_axis: int = 1, axes: Any = None) -> Any:
    return op.group_norm(x, layer.num_groups, layer.weight, layer.bias, layer.eps, channel_axis, axes)


@_layer(_groups)
def GroupNorm(num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None) -> Any:
    """Groups of channels minus their mean, divided by their standard deviation."""
    return _rows(num_channels, dtype, weight=affine, bias=affine)


def _rms_norm(layer: Any, x: Any) -> Any:
    found = _relax("rms_norm")(x, layer.weight, layer.axes, layer.epsilon)
    return found if layer.bias is None else _relax("add")(found, layer.bias)


@_layer(_rms_norm)
def RMSNorm(hidden_size: int, axes: Any = -1, epsilon: float = 1e-5, bias: bool = True, dtype: Any = None) -> Any:
    """Rows divided by their root mean square."""
    return _rows(hidden_size, dtype, bias=bias)


def _convolution(name: str) -> Any:
    """`nn.op.conv2d` etc.; the bias follows the weight."""

    def convolve(x: Any, weight: Any, bias: Any = None, *rest: Any, data_layout: Any = None, **options: Any) -> Any:
        layout = data_layout or "NC" + "DHW"[5 - x.ndim :]
        more = options if data_layout is None else {**options, "data_layout": layout}
        found = _relax(name)(x, weight, *rest, **more)
        shape = [-1 if letter == "C" else 1 for letter in layout]
        return found if bias is None else _relax("add")(found, _relax("reshape")(bias, shape))

    return convolve


def _convolutional(name: str, dimensions: int) -> Any:
    def forward(layer: Any, x: Any) -> Any:
        given = layer.stride, layer.padding, layer.dilation, layer.groups
        return getattr(op, f"conv{dimensions}d")(x, layer.weight, layer.bias, *given, data_layout=layer.data_layout)

    def parameters(
        in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, dtype: str | None = None, data_layout: str = "NC" + "DHW"[3 - dimensions :],
    ) -> Any:  # fmt: skip
        """Weights are OIW, OIHW or OIDHW."""
        kernel = [kernel_size] * dimensions if isinstance(kernel_size, int) else kernel_size
        weight = Parameter((out_channels, in_channels // groups, *kernel), dtype)
        return {"weight": weight, "bias": Parameter((out_channels,), dtype) if bias else None}

    parameters.__name__ = name
    return _layer(forward)(parameters)


Conv1D, Conv2D, Conv3D = (_convolutional(f"Conv{dimensions}D", dimensions) for dimensions in (1, 2, 3))


@_layer(lambda layer, x: op.conv1d_transpose(
    x, layer.weight, layer.bias, layer.stride, layer.padding, layer.output_padding, layer.dilation, layer.groups
))  # fmt: skip
def ConvTranspose1D(
    in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0,
    dilation: int = 1, groups: int = 1, bias: bool = True, dtype: str | None = None,
) -> Any:  # fmt: skip
    """Weights are IOW."""
    weight = Parameter((in_channels, out_channels // groups, kernel_size), dtype)
    return {"weight": weight, "bias": Parameter((out_channels,), dtype) if bias else None}


_OPERATORS = {name: _convolution(name) for name in ("conv1d", "conv2d", "conv3d", "conv1d_transpose")}


def _layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = [-1 - at for at in reversed(range(len(items(normalized_shape))))]
    return _relax("layer_norm")(x, weight, bias, axes, eps)


def _group_norm(
    x: Any, num_groups: int, weight: Any, bias: Any, eps: float = 1e-5, channel_axis: int = 1, axes: Any = None
) -> Any:
    return _relax("group_norm")(x, weight, bias, num_groups, channel_axis, axes, eps)


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: Any = False, scale: Any = None
) -> Any:
    return _relax("nn.attention")(query, key, value, attn_mask, scale, "TopLeft" if is_causal else None)


_OPERATORS.update(layer_norm=_layer_norm, group_norm=_group_norm, scaled_dot_product_attention=_attention)


def _activation(name: str) -> type[Module]:
    def forward(_: Module, x: Any) -> Any:
        return _relax(name.lower())(x)

    return type(name, (Module,), {"forward": forward, "__doc__": f"`{name.lower()}`."})


ReLU, SiLU, GELU = map(_activation, ("ReLU", "SiLU", "GELU"))
__all__ = [
    "GELU", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Embedding", "GroupNorm", "LayerNorm", "Linear", "Module",
    "ModuleList", "Parameter", "RMSNorm", "ReLU", "SiLU", "Tensor", "const", "op", "spec",
]  # fmt: skip
