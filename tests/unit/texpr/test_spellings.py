"""The table of spellings: its operators, their parameters, and the attributes of the languages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from weft.dialects.stablehlo_dialects import CHLO_DIALECT, STABLEHLO
from weft.frontends.graph_builder import operator_type
from weft.texpr.spellings import SPELLINGS, spellings

LEFT_TO_TYPES = {"dtype", "half_to_float"}
"""Attributes of ATen that the element type of the result tells."""


def test_rows_name_operators_and_parameters() -> None:
    for name, columns in SPELLINGS.items():
        operator = operator_type(name)
        roles = {role.name for role in operator.ROLES}
        for spelling in columns:
            assert {*spelling.parameters, *spelling.fixed} <= operator.SIGNATURE.parameters.keys() - roles, spelling
    for language in ("aten", "onnx", "relax", "stablehlo"):
        names = [name for columns in SPELLINGS.values() for s in columns if s.language == language for name in s.names]
        assert sorted(names) == sorted(spellings(language))


def test_onnx_has_the_operators_and_reads_all_their_attributes() -> None:
    defs: Any = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'").defs
    for name, (operator, spelling) in spellings("onnx").items():
        schema = defs.get_schema(name)
        assert set(spelling.parameters.values()) == set(schema.attributes), name
        assert schema.min_input <= len(operator_type(operator).ROLES), name


def test_aten_has_the_operators_and_reads_all_their_arguments() -> None:
    torch: Any = pytest.importorskip("torch")
    for name, (operator, spelling) in spellings("aten").items():
        _, packet, overload = name.split(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
        arguments = [argument.name for argument in schema.arguments]
        attributes = set(spelling.parameters.values())
        operands = [argument for argument in arguments if argument not in attributes]
        roles = len(operator_type(operator).ROLES)
        assert set(operands[roles:]) <= LEFT_TO_TYPES, name
        assert attributes <= set(arguments) or "." in name or packet in ("max", "min", "any", "all"), name


def test_stablehlo_has_the_ops_with_as_many_operands() -> None:
    ops: dict[str, Any] = {op.name: op for dialect in (STABLEHLO, CHLO_DIALECT) for op in dialect.operations}
    for name, (operator, _) in spellings("stablehlo").items():
        assert len(operator_type(operator).ROLES) == ops[name].ARITY, name


def test_relax_names_are_unique() -> None:
    names = import_module("weft.tvm.relax.names")
    for name, (operator, _) in spellings("relax").items():
        assert names.relax_name(operator) == name
        assert names.operator_of(name).__name__ == operator
