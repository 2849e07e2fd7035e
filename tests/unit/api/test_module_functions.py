"""Modules of several functions: looked up, merged, scheduled one by one, replaced, removed, with attributes."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.support.errors import CompileError


def mm() -> ModuleOp:
    A = te.placeholder((16, 16), "float32", name="A")
    B = te.placeholder((16, 16), "float32", name="B")
    k = te.reduce_axis((0, 16), name="k")
    Y = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    return te.create_func([A, B, Y], name="mm")


def relu() -> ModuleOp:
    Y = te.placeholder((16, 16), "float32", name="Y")
    C = te.compute((16, 16), lambda i, j: te.max(Y[i, j], 0.0), name="C")
    return te.create_func([Y, C], name="relu")


GRAPH = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call_tir @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = te.compute "Y" (%i) : tensor<4xf32> {
    %a = tensor.extract %x[%i] : tensor<4xf32>
    %s = arith.addf %a, %a : f32
    te.yield %s : f32
  }
  func.return %y : tensor<4xf32>
}
"""
TRIPLE = """
func.func @triple(%X: memref<4xf32>, %Y: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "Y" iters(%vi: spatial<4>) = [%i] {
      %a = memref.load %X[%vi] : memref<4xf32>
      %s = arith.addf %a, %a : f32
      %t = arith.addf %s, %a : f32
      memref.store %t, %Y[%vi] : memref<4xf32>
    }
  }
  func.return
}
"""
HOST = """
func.func @host(%X: memref<4xf32>, %Y: memref<4xf32>) {
  func.call @part(%X, %Y) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
func.func @part(%X: memref<4xf32>, %Y: memref<4xf32>) {
  func.return
}
"""


def text(module: ModuleOp) -> str:
    module.verify()
    return str(module)


def refused(module: ModuleOp, message: str) -> "pytest.RaisesExc[CompileError]":
    return pytest.raises(CompileError, match=message, check=lambda _: text(module) == before[id(module)])


before: dict[int, str] = {}


def kept(module: ModuleOp) -> ModuleOp:
    """Remember how a module is, so that `refused` sees whether it stayed so."""
    before[id(module)] = text(module)
    return module


def test_merged_scheduled_one_by_one_replaced_built_and_run() -> None:
    matmul, activation = kept(mm()), kept(relu())
    module = weft.merge(matmul, activation)
    assert weft.function_names(module) == ["mm", "relu"]
    assert text(matmul) == before[id(matmul)]
    assert text(activation) == before[id(activation)]

    plain = weft.lookup(module, "mm").clone()
    plain_relu = weft.lookup(module, "relu").clone()
    sch = weft.Schedule(module)
    y = sch.get_block("Y", func_name="mm")
    i, j, k = sch.get_loops(y)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(i, j0, k, j1)
    sch.vectorize(j1)
    c = sch.get_block("C", func_name="relu")
    sch.parallel(sch.get_loops(c)[0])

    weft.update_function(module, "mm", sch.mod)
    assert weft.function_names(module) == ["mm", "relu"], "stands where it stood"
    weft.assert_structural_equal(weft.lookup(module, "mm"), weft.lookup(sch.mod, "mm"))
    assert not weft.structural_equal(weft.lookup(module, "mm"), plain)
    weft.assert_structural_equal(weft.lookup(module, "relu"), plain_relu)
    weft.update_function(module, "mm_plain", plain)
    assert weft.function_names(module) == ["mm", "relu", "mm_plain"]

    a, b = np.random.default_rng(0).standard_normal((2, 16, 16), np.float32)
    lib = weft.build(module)
    found = {name: np.empty((16, 16), np.float32) for name in ("mm", "mm_plain", "relu")}
    lib["mm"](a, b, found["mm"])
    lib["mm_plain"](a, b, found["mm_plain"])
    lib["relu"](found["mm"], found["relu"])
    np.testing.assert_allclose(found["mm"], a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["mm_plain"], a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["relu"], np.maximum(found["mm"], 0))


def test_lookup_gives_the_function_itself_or_near_names() -> None:
    module = weft.merge(mm(), relu())
    assert weft.lookup(module, "relu") is list(module.ops)[1]
    with pytest.raises(CompileError, match="unknown function 'rlu', did you mean 'relu'"):
        weft.lookup(module, "rlu")


def test_functions_and_only_those_with_a_body_are_named() -> None:
    module = weft.parse("func.func private @later(memref<4xf32>)\n" + TRIPLE + "sched.func @s {\n}")
    assert weft.function_names(module) == ["triple"]
    assert weft.function_names(ModuleOp([])) == []


def test_a_replaced_callee_changes_what_its_caller_computes() -> None:
    """The graph calls by name: a tensor expression gives way to loops over buffers, with the same inputs."""
    module = weft.parse(GRAPH)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(weft.Interpreter(module).call("main", x), 2 * x)
    weft.update_function(module, "double", weft.lookup(weft.parse(TRIPLE), "triple"))
    assert weft.function_names(module) == ["main", "double"]
    text(module)
    y = np.empty_like(x)
    weft.build(module)["main"](x, y)
    np.testing.assert_array_equal(y, 3 * x)


def test_a_signature_that_callers_do_not_fit_is_refused() -> None:
    module = kept(weft.parse(GRAPH))
    wide = weft.parse(TRIPLE.replace("<4xf32>", "<8xf32>").replace("in 4", "in 8").replace("<4>", "<8>"))
    message = (
        r"update_function: @double is called by @main, which its new signature does not fit: graph.call_tir @double: "
        r"operand 0 is tensor<4xf32>, but the function takes memref<8xf32>"
    )
    with refused(module, message):
        weft.update_function(module, "double", wide)

    host = weft.parse(HOST)
    weft.update_function(host, "other", weft.lookup(host, "host"))
    kept(host)
    message = (
        r"@part is called by @host, @other, which its new signature does not fit: the call is \(memref<4xf32>, "
        r"memref<4xf32>\) -> \(\), @part is \(memref<16x16xf32>, memref<16x16xf32>\) -> \(\)"
    )
    with refused(host, message):
        weft.update_function(host, "part", relu())


def test_what_a_new_function_calls_is_there_and_fits() -> None:
    host = weft.lookup(weft.parse(HOST), "host")
    module = kept(weft.parse(TRIPLE.replace("@triple", "@parts")))
    with refused(module, "@run uses @part, which the module does not have, did you mean 'parts'.*add it first"):
        weft.update_function(module, "run", host)
    module = relu()
    weft.update_function(module, "part", relu())
    kept(module)
    with refused(module, r"@run does not fit the module: the call is \(memref<4xf32>, .* @part is \(memref<16x16xf32>"):
        weft.update_function(module, "run", host)


def test_a_function_that_calls_itself_is_renamed_throughout() -> None:
    module = weft.parse("""
func.func @f(%X: memref<4xf32>) {
  func.call @f(%X) {also = [@f, {deep = @f}], other = @g} : (memref<4xf32>) -> ()
  func.return
}
func.func @g() {
  func.return
}
""")
    weft.update_function(module, "h", weft.lookup(module, "f"))
    assert weft.function_names(module) == ["f", "g", "h"]
    copy = str(weft.lookup(module, "h"))
    assert "func.call @h(" in copy and "@f" not in copy and "@g" in copy
    assert "@h" not in str(weft.lookup(module, "f"))
    # Its own calls are no reason to keep it.
    weft.remove_function(module, "f")
    assert weft.function_names(module) == ["g", "h"]


def test_a_function_replaced_by_itself_stays() -> None:
    module = kept(weft.parse(HOST))
    weft.update_function(module, "part", weft.lookup(module, "part"))
    assert text(module) == before[id(module)]


def test_a_declaration_is_replaced_by_a_definition() -> None:
    module = weft.parse(
        "func.func private @part(memref<4xf32>, memref<4xf32>) -> ()\n" + HOST.split("func.func @part")[0]
    )
    weft.update_function(module, "part", weft.parse(TRIPLE))
    assert weft.function_names(module) == ["part", "host"]
    x, y = np.ones(4, np.float32), np.empty(4, np.float32)
    weft.build(module)["host"](x, y)
    np.testing.assert_array_equal(y, 3 * x)


def test_update_is_refused() -> None:
    module = kept(weft.parse(TRIPLE + "sched.func @s {\n}"))
    with refused(module, "update_function: @s is no function, but a sched.func"):
        weft.update_function(module, "s", mm())
    with refused(module, "the name of a function is not empty"):
        weft.update_function(module, "", mm())
    with refused(module, r"no function 'x' and not just one \(it has: 'mm', 'relu'\)"):
        weft.update_function(module, "x", weft.merge(mm(), relu()))
    with refused(module, r"no function 'x' and not just one \(it has: none\)"):
        weft.update_function(module, "x", ModuleOp([]))


def test_remove() -> None:
    module = weft.merge(mm(), relu())
    weft.remove_function(module, "mm")
    assert weft.function_names(module) == ["relu"]
    weft.remove_function(module, "relu")
    assert list(module.ops) == []
    declared = weft.parse("func.func private @later(memref<4xf32>)")
    weft.remove_function(declared, "later")
    assert list(declared.ops) == []


def test_remove_is_refused() -> None:
    module = kept(weft.parse(HOST + TRIPLE + 'sched.func @s {\n  %y = sched.get_block "Y" in @triple : block\n}'))
    with refused(module, "unknown function 'prt', did you mean 'part'"):
        weft.remove_function(module, "prt")
    with refused(module, "remove_function: @part is used by @host"):
        weft.remove_function(module, "part")
    with refused(module, "remove_function: @triple is used by @s"):
        weft.remove_function(module, "triple")


def test_merge_keeps_all_in_order_and_links_declarations() -> None:
    caller = HOST.split("func.func @part")[0] + "func.func private @part(memref<4xf32>, memref<4xf32>) -> ()"
    definition = TRIPLE.replace("@triple", "@part") + 'sched.func @s {\n  %y = sched.get_block "Y" in @part : block\n}'
    for texts in ((caller, definition), (definition, caller)):
        module = weft.merge(*map(weft.parse, texts))
        text(module)
        assert sorted(weft.function_names(module)) == ["host", "part"]
        assert [op.name for op in module.ops].count("sched.func") == 1
        x, y = np.ones(4, np.float32), np.empty(4, np.float32)
        weft.build(module)["host"](x, y)
        np.testing.assert_array_equal(y, 3 * x)
    both = weft.merge(*[weft.parse("func.func private @later(memref<4xf32>)")] * 2)
    assert len(list(both.ops)) == 1


def test_merge_is_refused() -> None:
    first, second = kept(mm()), kept(mm())
    with refused(first, "merge: two of the modules define @mm"):
        weft.merge(first, second)
    with refused(first, "merge: two of the modules define @mm"):
        weft.merge(first, weft.parse("sched.func @mm {\n}"))
    with refused(first, r"merge: the modules disagree on the type of @mm: \(memref<16x16xf32>.* and \(memref<4xf32>\)"):
        weft.merge(first, weft.parse("func.func private @mm(memref<4xf32>)"))
    with pytest.raises(CompileError, match="merge takes at least one module"):
        weft.merge()


def test_attributes_of_merged_modules() -> None:
    one = weft.parse("module attributes {a = 1, b = 2} {\n}")
    two = weft.parse("module attributes {b = 2, c = 3} {\n}")
    assert sorted(weft.merge(one, two).attributes) == ["a", "b", "c"]
    assert sorted(one.attributes) == ["a", "b"]
    with pytest.raises(CompileError, match="disagree on the attribute 'a': 1 : i64 and 5 : i64"):
        weft.merge(one, weft.parse("module attributes {a = 5} {\n}"))


def test_attributes_of_functions() -> None:
    module = weft.parse(TRIPLE)
    assert weft.function_attributes(module, "triple") == {}
    values = {"count": 3, "pure": True, "scale": 0.5, "kind": "elementwise", "order": [1, 2], "mixed": ["a", [True]]}
    for key, value in values.items():
        weft.set_function_attribute(module, "triple", key, value)
    weft.set_function_attribute(module, "triple", "unit", UnitAttr())
    assert weft.function_attributes(module, "triple") == {**values, "unit": UnitAttr()}
    again = weft.parse(text(module))
    assert weft.function_attributes(again, "triple") == {**values, "unit": UnitAttr()}
    assert isinstance(weft.function_attributes(again, "triple")["pure"], bool)
    for key in (*values, "unit"):
        weft.set_function_attribute(module, "triple", key, None)
    weft.assert_structural_equal(module, weft.parse(TRIPLE))


def test_attributes_that_cannot_be_set() -> None:
    module = weft.parse(TRIPLE)
    weft.set_function_attribute(module, "triple", "count", 3)
    kept(module)
    for key in ("sym_name", "function_type", ""):
        with refused(module, f"'{key}' is no attribute of @triple that can be set"):
            weft.set_function_attribute(module, "triple", key, 1)
    with pytest.raises(ValueError, match="argument 'value' takes integers of at most 64 bits, got 9223372036854775808"):
        weft.set_function_attribute(module, "triple", "n", 2**63)
    with refused(module, "attribute 'n': an attribute is a number, text, a list or a dict, got .* type complex"):
        weft.set_function_attribute(module, "triple", "n", [1j])  # pyright: ignore[reportArgumentType]
    with refused(module, "@triple has no attribute 'cout', did you mean 'count'"):
        weft.set_function_attribute(module, "triple", "cout", None)
    with refused(module, "unknown function 'tripel', did you mean 'triple'"):
        weft.set_function_attribute(module, "tripel", "count", 1)


def test_errors_point_to_the_place() -> None:
    module = weft.parse(HOST, "host.mlir")
    with pytest.raises(CompileError, match=r"host\.mlir:3:3: error: remove_function: @part is used by @host"):
        weft.remove_function(module, "part")


def test_a_replaced_function_keeps_its_locations() -> None:
    module = weft.parse(HOST, "host.mlir")
    weft.update_function(module, "more", weft.lookup(weft.parse(TRIPLE, "triple.mlir"), "triple"))
    added = weft.lookup(module, "more")
    assert isinstance(added, FuncOp)
    assert "triple.mlir:2:1" in str(CompileError.at(added, "here"))
