"""Preconditions of calls of a flat function besides shapes: assumptions on symbols and index parameters, as text."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.analysis.computed import Division, Product, meaning_of
from weft.analysis.index import Index, Quotient, Remainder
from weft.dialects.tir import AssumeOp, AssumeShapeOp
from weft.dialects.tir_regions import AssumeStridesOp
from weft.dialects.traversal import operations_in
from weft.passes.tir.flat_signature import FlatSignature, Quantity, quantity_of, stated_quantities
from weft.passes.tir.nest import buffer_type
from weft.support.errors import CompileError


def call_facts(function: FuncOp, signature: FlatSignature) -> list[str]:
    """The facts that `tir.assume` states, and the extents and strides that are computed from others.

    Raises CompileError for what does not only depend on parameters and their extents.
    """
    facts: list[str] = []
    for op in operations_in(function):
        if isinstance(op, AssumeOp):
            texts = _Texts(signature, op)
            operands = [Index.of(value) for value in op.symbols]
            left, right = (texts.index(Index.of_expr(side, operands)) for side in (op.left, op.right))
            facts.append(f"{left} {op.kind.value} {right}")
        elif isinstance(op, AssumeShapeOp | AssumeStridesOp) and isinstance(op.buffer, BlockArgument):
            for quantity, value in stated_quantities(op, op.buffer):
                if quantity_of(value) is None and not isinstance(value, BlockArgument):
                    own = signature.of_quantity[quantity]
                    facts.append(f"{own} == {_Texts(signature, op).index(Index.of(value))}")
    return list(dict.fromkeys(facts))


class _Texts:
    """Index expressions in terms of what callers pass."""

    def __init__(self, signature: FlatSignature, op: Operation) -> None:
        self._signature = signature
        self._op = op

    def index(self, index: Index) -> str:
        parts: list[str] = []
        for atom, factor in sorted(index.terms.items(), key=lambda term: term[1] < 0):
            text = self._value(atom) if isinstance(atom, SSAValue) else self._digit(atom)
            if abs(factor) != 1:
                text = f"{abs(factor)} * {_wrapped(text)}"
            parts.append(f"- {text}" if factor < 0 else f"+ {text}")
        if index.constant or not parts:
            parts.append(f"- {-index.constant}" if index.constant < 0 else f"+ {index.constant}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else f"0 {text}"

    def _digit(self, atom: Quotient | Remainder) -> str:
        return f"{_wrapped(self.index(atom.numerator))} {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor}"

    def _value(self, value: SSAValue) -> str:
        source = quantity_of(value)
        if source is not None:
            symbol = self._signature.of_quantity.get(source)
            return symbol or str(_static_extent(self._op, source))
        if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), FuncOp):
            return self._signature.of_scalar.get(value.index, self._signature.labels[value.index])
        meaning = meaning_of(value)
        if isinstance(meaning, Product):
            return f"{_wrapped(self.index(meaning.left))} * {_wrapped(self.index(meaning.right))}"
        if isinstance(meaning, Division):
            sign = "//" if meaning.is_quotient else "%"
            return f"{_wrapped(self.index(meaning.numerator))} {sign} {_wrapped(self.index(meaning.divisor))}"
        name = f"%{value.name_hint}" if value.name_hint else "a value"
        raise CompileError.at(
            self._op,
            f"{name} must be computed from index parameters and extents of parameters, so that calls can check it",
        )


def _static_extent(op: Operation, source: Quantity) -> int:
    """A static extent of a parameter."""
    function = op.parent_op()
    while not isinstance(function, FuncOp):
        if function is None:
            raise CompileError.at(op, f"{op.name} stands outside of any function")
        function = function.parent_op()
    return buffer_type(function.args[source.parameter]).get_shape()[source.dimension]


def _wrapped(text: str) -> str:
    return f"({text})" if " " in text else text
