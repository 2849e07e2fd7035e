"""Listing operations and copying them: as xDSL's `walk` and `clone` do it."""

from xdsl.context import Context
from xdsl.dialects import cf, func
from xdsl.dialects.arith import Arith, ConstantOp
from xdsl.dialects.builtin import Builtin, FunctionType, IndexType, ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import Parser

import weft
from weft import te
from weft.dialects.traversal import copy_of, operations_in


def program() -> ModuleOp:
    a, b = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_func([a, b, c], name="matmul")


def test_operations_come_in_order() -> None:
    module = program()
    function = next(iter(module.ops))
    region = function.regions[0]
    assert len(operations_in(module)) > 10
    for root in (module, function, region, region.block):
        assert operations_in(root) == list(root.walk())
        assert operations_in(root, inner_first=True) == list(root.walk(region_first=True))


def test_operations_may_go_while_they_are_looked_at() -> None:
    module = program()
    for op in operations_in(module, inner_first=True)[:-1]:
        op.detach()
    assert list(module.ops) == []


def test_copies_are_equal_and_apart() -> None:
    module = program()
    text, copy = str(module), copy_of(module)
    assert str(copy) == text
    copy.verify()
    assert not set(map(id, operations_in(module))) & set(map(id, operations_in(copy)))
    sch = weft.Schedule(copy)
    sch.split(sch.get_loops("C")[0], factors=[None, 4])
    assert str(module) == text
    assert [op.location for op in operations_in(copy)] == [op.location for op in operations_in(module)]


def test_copies_take_other_operands_and_tell_their_results() -> None:
    one, two = ConstantOp.from_int_and_width(1, IndexType()), ConstantOp.from_int_and_width(2, IndexType())
    cast = UnrealizedConversionCastOp.get([one.result], [IndexType()])
    cast.results[0].name_hint = "c"
    mapping: dict[SSAValue, SSAValue] = {one.result: two.result}
    copy = copy_of(cast, mapping)
    assert list(copy.operands) == [two.result]
    assert mapping[cast.results[0]] is copy.results[0]
    assert copy.results[0].name_hint == "c"
    assert copy.parent is None


def test_branches_go_to_the_copies_of_blocks() -> None:
    end = Block([func.ReturnOp()])
    start = Block([cf.BranchOp(end)])
    function = func.FuncOp("f", FunctionType.from_lists([], []), Region([start, end]))
    copy = copy_of(ModuleOp([function]))
    first, last = next(iter(copy.ops)).regions[0].blocks
    assert first.last_op is not None
    assert list(first.last_op.successors) == [last]


def test_operations_without_a_class_are_copied() -> None:
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(Arith)
    module = Parser(context, '"a.b"() ({ %x = "a.c"() : () -> index }) {k = 1 : i32} : () -> ()').parse_module()
    assert str(copy_of(module)) == str(module)
