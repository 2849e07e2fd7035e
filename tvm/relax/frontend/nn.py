"""`relax.frontend.nn`: models as Python classes, exported as graph functions (`export_tvm`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.ir.module import IRModule
from weft.tvm.relax import op as _op
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Expr, TensorStructInfo, Var, const

Tensor = Expr


class Parameter:
    """A parameter of a model, which the functions of an exported module take after their inputs."""

    def __init__(self, shape: Sequence[Any], dtype: str | None = None) -> None:
        self.shape, self.dtype = tuple(shape), dtype or "float32"
        self.expr: Var | None = None
        """The variable of the function during its export."""


def _value(value: Any) -> Any:
    if isinstance(value, Parameter):
        if value.expr is None:
            raise CompileError("a parameter has a value in forward(): call export_tvm")
        return value.expr
    given: Any = map(_value, items(value))
    return list(given) if isinstance(value, list) else tuple(given) if isinstance(value, tuple) else value


def __getattr__(name: str) -> Callable[..., Any]:
    """Operators: `nn.op.relu(x)`, `nn.relu(x)`."""
    if name.startswith("__"):
        raise AttributeError(name)
    known = {"permute": "permute_dims", "unsqueeze": "expand_dims", "scaled_dot_product_attention": "nn.attention"}
    function = _op.applied(known.get(name, name))
    return lambda *args, **options: function(*map(_value, args), **{k: _value(v) for k, v in options.items()})


op = type("op", (), {"__getattr__": staticmethod(__getattr__)})()


class spec:
    """Types of inputs: `nn.spec.Tensor((1, "n"), "float32")`."""

    Tensor = TensorStructInfo


class Module:
    """A model: `__init__` creates parameters and parts, `forward` computes."""

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters of the model and of its parts, with their names: `linear.weight`."""
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
        """Set the dtype of all parameters."""
        for _, parameter in self.named_parameters():
            parameter.dtype = dtype

    def export_tvm(
        self, spec: Mapping[str, Mapping[str, TensorStructInfo]], debug: bool = False
    ) -> tuple[IRModule, list[tuple[str, Parameter]]]:
        """A module with a function for each method whose inputs `spec` states, and the parameters in the order in which
        functions take them, after the inputs. `debug` has no effect."""
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
    """A list of parts."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = list(modules)
        self.__dict__.update({str(at): part for at, part in enumerate(modules)})

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def forward(self, x: Any) -> Any:
        for part in self.modules:
            x = part(x)
        return x


class Linear(Module):
    """`x @ weight.T + bias`."""

    def __init__(
        self, in_features: Any, out_features: Any, bias: bool = True, dtype: str | None = None, out_dtype: Any = None
    ) -> None:
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), dtype) if bias else None
        self.out_dtype = out_dtype

    def forward(self, x: Any) -> Any:
        return __getattr__("linear")(x, self.weight, self.bias, self.out_dtype)


class Embedding(Module):
    """Rows of a table."""

    def __init__(self, num: Any, dim: Any, dtype: str | None = None) -> None:
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Any) -> Any:
        return __getattr__("take")(self.weight, x, axis=0)


class LayerNorm(Module):
    """Rows minus their mean, divided by their standard deviation."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, elementwise_affine: bool = True, dtype: str | None = None
    ) -> None:
        size, self.eps = (normalized_shape,), eps
        self.weight = Parameter(size, dtype) if elementwise_affine else None
        self.bias = Parameter(size, dtype) if elementwise_affine else None

    def forward(self, x: Any) -> Any:
        return __getattr__("layer_norm")(x, self.weight, self.bias, -1, self.eps)


class RMSNorm(Module):
    """Rows divided by their root mean square."""

    def __init__(
        self, hidden_size: int, axes: Any = -1, epsilon: float = 1e-5, bias: bool = True, dtype: str | None = None
    ) -> None:
        self.weight, self.axes, self.epsilon = Parameter((hidden_size,), dtype), axes, epsilon
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Any) -> Any:
        found = __getattr__("rms_norm")(x, self.weight, self.axes, self.epsilon)
        return found if self.bias is None else __getattr__("add")(found, self.bias)


def _activation(name: str) -> type[Module]:
    def forward(_: Module, x: Any) -> Any:
        return __getattr__(name.lower())(x)

    return type(name, (Module,), {"forward": forward, "__doc__": f"`{name.lower()}`."})


ReLU, SiLU, GELU = map(_activation, ("ReLU", "SiLU", "GELU"))
__all__ = [
    "GELU", "Embedding", "LayerNorm", "Linear", "Module", "ModuleList", "Parameter", "RMSNorm", "ReLU",
    "SiLU", "Tensor", "const", "op", "spec",
]  # fmt: skip
