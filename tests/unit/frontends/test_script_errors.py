"""What is no program is refused at its place in the user's Python, with its values."""

import ast
import linecache
import math
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import StoreOp

import weft
from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.source import Source
from weft.script import ir_module, parse
from weft.script import tir as T
from weft.support.errors import CompileError
from weft.support.locations import location_of

HEAD = """@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8, 8), "float32")):
"""
BLOCK = """for i, j in T.grid(8, 8):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        """


def refusal(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        parse(text, "user.py")
    return caught.value


def in_function(statements: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in statements.splitlines())


def underlined(error: CompileError) -> str:
    """The part of the source line that the carets are under."""
    lines = str(error).split("\n")
    assert len(lines) == 3, error
    start = lines[2].index("^")
    return lines[1][start : start + lines[2].count("^")]


@pytest.mark.parametrize(
    ("statement", "message", "place"),
    [
        ("C[vi, vj] = A[vi, vk]", "unknown name 'vk', did you mean 'vj' or 'vi'?", "vk"),
        ("C[vi, vj] = A[vi]", "A has 2 dimensions, and 1 indices are given", "A[vi]"),
        ("C[vi, vj] = A[vi, 0:4]", "elements of A are read one by one: give 2 indices", "A[vi, 0:4]"),
        ("C[vi, vj] = A", "A is a buffer: read an element of it, A[i0, i1]", "A"),
        ("C[vi, A[vi, vj]] = 0", "index 1 of C must be an integer, got float32 `A[vi, vj]`", "A[vi, vj]"),
        ("C[vi, vj] = A[vi, vj] + B[vi]", "`A[vi, vj]` is float32 and `B[vi]` is int32", "A[vi, vj] + B[vi]"),
        ("C[vi, vj] = B[vi]", "buffer C is float32, and `B[vi]` is int32: cast it", "B[vi]"),
        ("C[vi, vj] += B[vi]", "`C[vi, vj]` is float32 and `B[vi]` is int32", "C[vi, vj] += B[vi]"),
        ("B[vi] = 1.5", "1.5 is no int32", "1.5"),
        ("B[vi] = 5000000000", "5000000000 does not fit int32", "5000000000"),
        ("C[vi, vj] = A[vi, vj] << 2", "`<<` takes integers, got float32", "A[vi, vj] << 2"),
        ("C[vi, vj] = T.exq(A[vi, vj])", "there is no T.exq, did you mean 'eq' or 'exp'", "T.exq"),
        ("C[vi, vj] = T.exp(A[vi, vj], 3)", "T.exp: too many positional arguments", "T.exp(A[vi, vj], 3)"),
        ("C[vi, vj] = T.exp(B[vi])", "exp takes floats, got int32 `B[vi]`", "T.exp(B[vi])"),
        ("C[vi, vj] = foo(A[vi, vj])", "unknown name 'foo'", "foo"),
        ("C[vi, vj] = print(A[vi, vj])", "unknown name 'print'", "print"),
        ("C[vi, vj] = len(A)", "len is not called from a script", "len(A)"),
        ("C[vi, vj] = T.grid(3)", "T.grid gives no value here; it is used so: `for i, j in", "T.grid(3)"),
        ("C[vi, vj] = A.shapes", "buffer A has no 'shapes': it has shape, strides, dtype", "A.shapes"),
        ("C[vi, vj] = T.float16(0)", "buffer C is float32, and `0.0` is float16: cast it", "T.float16(0)"),
        (
            'C[vi, vj] = T.float32("one")',
            'float32 takes a number, "inf", "-inf" or "nan", got \'one\'',
            'T.float32("one")',
        ),
        ("C[vi, vj] = min(A[vi, vj], 'x')", "expected a number or a value, got 'x' of type str", "min(A[vi, vj], 'x')"),
        ("C[vi, vj] = 1 if A[vi, vj] else 0", "needs a bool condition, got float32", "1 if A[vi, vj] else 0"),
        ("if A[vi, vj]: C[vi, vj] = 1", "a condition is a bool, `A[vi, vj]` is float32", "A[vi, vj]"),
        ("C[vi, vj] = vi / 2", "`/` takes floats, got int64", "vi / 2"),
        ("C[vi, vj] = T.axis.spatial", "expected a number or a value, got T.axis.spatial", "T.axis.spatial"),
        ("A[vi, vj] + 1", "the value of this expression is not used", "A[vi, vj] + 1"),
        ("T.exp(A[vi, vj])", "the value of this call is not used", "T.exp(A[vi, vj])"),
        ("x += 1", "only elements of buffers are updated", "x += 1"),
        ("x[0] = 1", "unknown name 'x'", "x"),
        ("return 3", "T.ret ends a function", "return 3"),
        ("while True: pass", "a condition compares elements of buffers, got True of type bool", "True"),
        ("x = lambda: 3", "`lambda` has no meaning in a script", "lambda: 3"),
        ("x: T.float32 = B[vi]", "x is float32, and `B[vi]` is int32: cast it", "x"),
        ("x, y = 1, 2, 3", "2 names, and 3 values", "1, 2, 3"),
        ("C[vi, vj + 1] = 0", "writes C out of bounds: in iteration (i=0, j=7) index 1 is 8", "C"),
        ("T.where(vi < 3)", "vi is an axis of the block: loops are what T.where and axes are made of", "vi"),
        ("T.where(i + 3)", "T.where takes conditions, got", "i + 3"),
        ("T.where(B[i])", "T.where takes conditions, got", "B[i]"),
        ("T.reads(A[vi, 4:2])", "its size is a positive number, 4:2 has -2", "A[vi, 4:2]"),
        ("T.reads(A[vi])", "A has 2 dimensions, and 1 ranges are given", "A[vi]"),
        ("vj = T.axis.spatial(8, j)", "vj is an axis already", "vj"),
        ('va = T.axis.remap("X", [i])', 'the kind of an axis is "S" or "R", got "X"', '"X"'),
        ('va = T.axis.remap("SS", [i])', "1 axes, 2 kinds and 1 loop variables", 'T.axis.remap("SS", [i])'),
        ('va = T.axis.remap("S", [i + j])', "T.axis.remap takes loop variables; write", "[i + j]"),
        ('T.call_extern("g", A, dtype="int32")', 'a function outside takes pointers: A.access_ptr("r")', "A"),
        ('T.call_extern("g", A.access_ptr("x"), dtype="")', 'access is "r", "w" or "rw"', 'A.access_ptr("x")'),
        (
            'T.call_extern("g", A.access_ptr(1, offset=3), dtype="")',
            "T.address_of(A[i, j]) is one to another",
            "offset=3",
        ),
        ('T.call_extern("g", T.address_of(A), dtype="")', "points to an element of a buffer", "T.address_of(A)"),
        (
            'T.call_extern("g", T.access_ptr(A[0, 0], "x"), dtype="")',
            "read, write, readwrite",
            'T.access_ptr(A[0, 0], "x")',
        ),
        ('T.call_extern("g", A)', "names a function and its dtype", 'T.call_extern("g", A)'),
        ("T.call_extern(3)", "names a function and its dtype", "T.call_extern(3)"),
        (
            'T.call_extern("f", A.access_ptr("r"), dtype="")',
            "f takes 3 arguments, 1 are given",
            'T.call_extern("f", A.access_ptr("r"), dtype="")',
        ),
        ("T.axis.spatial(8, i)", "an axis has a name", "T.axis.spatial(8, i)"),
        (
            "va = T.axis.spatial((i, 8), i)",
            "axis va starts at `i`: its start is a number or made of extents",
            "T.axis.spatial((i, 8), i)",
        ),
        ("f(A, B)", "f takes 3 arguments, 2 are given", "f(A, B)"),
        ("f(A, C, B)", "argument 1 of f is memref<8xi32>, and memref<8x8xf32> is given", "C"),
        ('x = T.op("arith.foo", 3)', "there is no operation 'arith.foo' in scripts", 'T.op("arith.foo", 3)'),
        (
            'x = T.op("arith.addi", vi, vj, results=["f3"])',
            "`f3` is not an attribute",
            'T.op("arith.addi", vi, vj, results=["f3"])',
        ),
    ],
)
def test_statements_of_a_block(statement: str, message: str, place: str) -> None:
    error = refusal(in_function(BLOCK + statement))
    assert message in str(error)
    assert underlined(error) == place
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("user.py", 6)


def test_ops_by_name_are_verified_where_they_are() -> None:
    op = 'T.op("tir.assume", vi, properties={"sides": T.attr("affine_map<(d0) -> (d0, 0)>"), "relation": "=="})'
    error = refusal(in_function(BLOCK + op))
    assert "user.py:6:13: error: tir.assume must be at the top of a function, not in a loop or block" in str(error)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("for i, j, k in T.grid(8, 8): pass", "3 loop variables, and T.grid of 2 extents"),
        ("for i in (1, 2): pass", "a loop runs over range(n)"),
        ("for i, j in range(8): pass", "one loop has one variable, got 2"),
        ("for i in T.block(8): pass", "T.block does not make a loop"),
        ("for i in range(8, step=2): pass", "loops have no option step"),
        ("for i in range(8, 0, -2): pass", "the step of i must not be negative, got -2"),
        ("for i in range(0, 8, 0): pass", "the step of i is a positive number, got 0"),
        ("for i in T.thread_binding(8): pass", "the thread axis is missing"),
        ("for i in T.serial(2.5): pass", "the extent of i must be an integer, got 2.5"),
        ("for i in range(-1): pass", "the extent of i must not be negative, got -1"),
        ("X = T.match_buffer(A, (8, 4))", "X has the shape of the region of A, [8, 8], got (8, 4)"),
        ("X = T.match_buffer(A[0:4, 0:8], (8, 8))", "X has the shape of the region of A, [4, 8], got (8, 8)"),
        ("X = T.match_buffer(A[0:4, 0:n], (4, 8))", "unknown name 'n'"),
        ("X = T.match_buffer(A[0:4, 2], (4,))", "X has the shape of the region of A, [4, 1], got (4,)"),
        ('X = T.match_buffer(A[0, 0:8], (8,), "int32")', "X is a part of A, whose dtype is float32"),
        ('X = T.match_buffer(A[0, 0:8], (8,), scope="shared")', "X is a part of A, whose scope is global"),
        ("X = T.match_buffer(A[0:4, 0:8], (4, 8), strides=(4, 1))", "stride 0 of X is that of its region in A"),
        ("X = T.match_buffer(A[0:4, 0:8], (4, 8), strides=(1,))", "X has 2 dimensions, and 1 strides are given"),
        ("X = T.match_buffer(A[1, 0:8], (8,), elem_offset=9)", "elem_offset of X is that of its region in A"),
        ("X = T.alloc_buffer((8, n))", "unknown name 'n'"),
        ('X = T.alloc_buffer((8, 8), "float33")', "there is no element type 'float33', did you mean 'float32'"),
        ("X = T.alloc_buffer((8, 8), strides=(1, 8))", "the strides of a temporary are numbers, row-major, 1 the last"),
        ("X = T.alloc_buffer((8, 8), shape=(1, 8))", "shape is given twice"),
        ("X = T.alloc_buffer((8, 8), color=1)", "there is no option color"),
        ("X = T.alloc_buffer()", "buffer X has no shape"),
        ("with T.init(): pass", "T.init() is used in a block"),
        ("with A: pass", "`with` opens a block"),
        ("T.grid(1)", "T.grid is not allowed here"),
        ("T.func_attr(3)", "T.func_attr takes a dict"),
        ('T.func_attr({"tir.promises": ["noalia"]})', "unknown promise 'noalia', did you mean 'noalias'"),
        (
            'T.func_attr({"tir.noalias": False, "tir.promises": ["noalias"]})',
            'tir.noalias is False, and tir.promises is ["noalias"]',
        ),
        ('T.func_attr({"a": A})', "an attribute is a number, text, a list or a dict, got a value of type Buffer"),
        ("A[0, 0] = 1 // 0", "integer division or modulo by zero"),
        ("A[0, 0] = A[0, 0] * (1, 2)[A[0, 0]]", "is not known at parse time"),
        ("A[0, 0] = (3).__class__", "__class__ has no meaning in a script"),
        ("n = T.int64()\nfor i in range(n): pass", "the value of n is not known: no buffer that is declared so far"),
        ('with T.block("x"):\n    vi = T.axis.spatial(8, 0)\n    C[vi, 0] = 1', "the loops do not cover it"),
        ('with T.block("x"):\n    C[0, 0] = 1\n    T.reads(A[0, 0])', "T.reads is at the start of a block"),
        ('with T.block("x"):\n    C[0, 0] = 1\n    with T.init(): pass', "T.init() is used once in a block"),
        ("if A[0, 0] > 0:\n    x = B[0]\nelse:\n    x = A[0, 1]\nA[0, 0] = x", "x is int32 in one branch and float32"),
        ("x = " + " + ".join(["B[0]"] * 900), "nested too deeply"),
    ],
)
def test_statements_of_a_function(statement: str, message: str) -> None:
    error = refusal(in_function(statement))
    assert message in str(error)
    assert error.location is not None
    assert error.location.file == "user.py"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("x = ", "user.py:1:5", "this is no Python: invalid syntax"),
        ("", None, "user.py has neither a class under @ir_module nor a function under @T.prim_func"),
        ("class M:\n pass", "user.py:1:1", "class M is not under @ir_module"),
        ("@ir_module\nclass M:\n  def f(): pass", "user.py:3:3", "f is not decorated"),
        ("@ir_module\nclass M:\n  @R.function\n  def f(): pass", "user.py:4:3", "f is under @function"),
        (
            "@ir_module\nclass M:\n  for i in 3: pass",
            "user.py:3:3",
            "outside of functions only imports and constants are allowed",
        ),
        ("@ir_module\nclass M:\n  I.other()", "user.py:3:3", "a module holds functions, constants, I.module_attrs"),
        ("@ir_module\nclass M:\n  I.mlir(3)", "user.py:3:3", "I.mlir takes the text of operations"),
        ('@ir_module\nclass M:\n  I.mlir("x.y")', "user.py:3:3", "these are not operations: "),
        ("@ir_module\nclass M: pass\n@ir_module\nclass M: pass", "user.py:4:1", "a script has one class"),
        (
            "@ir_module\nclass M: pass\n@T.prim_func\ndef f(): pass",
            "user.py:4:1",
            "a script has one class, or functions",
        ),
        ("@T.prim_func\ndef f(): pass\n@T.prim_func\ndef f(): pass", "user.py:4:1", "two functions are called 'f'"),
        ("@T.prim_func\ndef f(A): pass", "user.py:2:7", "parameter A has no type"),
        ("@T.prim_func\ndef f(A: T.Buffer): pass", "user.py:2:10", "parameter A is a T.Buffer((m, n), "),
        ("@T.prim_func\ndef f(A: int): pass", "user.py:2:10", "parameter A is a T.Buffer((m, n), "),
        ("@T.prim_func\ndef f(A: T.Buffer(8) = 3): pass", "user.py:2:24", "parameters have no defaults"),
        ("@T.prim_func\ndef f(*A: T.handle): pass", "user.py:2:8", "a fixed number of parameters"),
        ("@T.prim_func\ndef f(a: T.handle): pass", "user.py:2:7", "a has no shape: give it one"),
        ("@T.prim_func\ndef f(A: T.Buffer((-1,))): pass", "user.py:2:19", "A: extent 0 must not be negative, got -1"),
        ('@T.prim_func\ndef f(A: T.type("f32x")): pass', "user.py:2:10", "`f32x` is not an attribute"),
    ],
)
def test_scripts_as_a_whole(text: str, place: str | None, message: str) -> None:
    error = refusal(text)
    assert message in str(error)
    assert place is None or str(error.location) == place


def test_columns_count_characters() -> None:
    error = refusal(
        '@T.prim_func\ndef f(Ä: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):\n    C[0] = Ä[0] + öl\n'
    )
    assert str(error.location) == "user.py:3:19"
    assert underlined(error) == "öl"


def test_decorated_functions_point_into_their_file() -> None:
    with pytest.raises(CompileError, match="unknown name 'vk'") as caught:

        @T.prim_func
        def wrong(A: T.Buffer((8,), "float32")):
            A[0] = A[vk]  # noqa: F821

    location = caught.value.location
    assert location is not None
    assert Path(location.file).name == "test_script_errors.py"
    assert linecache.getline(location.file, location.line)[location.column - 1 :].startswith("vk]  # noqa")


def test_ops_carry_the_place_of_their_expression() -> None:
    @ir_module
    class Module:
        @T.prim_func
        def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
            for i in range(8):
                C[i] = T.exp(A[i]) + T.float32(1)

    function = Module.body.block.first_op
    assert isinstance(function, FuncOp)
    places = {}
    for op in function.walk():
        location = location_of(op)
        assert location is not None
        line = linecache.getline(location.file, location.line)
        places[op.name] = line[location.column - 1 :].strip()
    assert places["memref.load"].startswith("A[i])")
    assert places["math.exp"].startswith("T.exp(A[i])")
    assert places["arith.addf"].startswith("T.exp(A[i]) + T.float32(1)")
    assert places["memref.store"].startswith("C[i] = ")
    assert places["tir.for"].startswith("for i in range(8)")
    assert places["func.func"].startswith("def f(A")


def test_refusals_of_schedules_show_the_script() -> None:
    @T.prim_func
    def scan(A: T.Buffer((8,), "float32")):
        for i in range(7):
            with T.block("A"):
                vi = T.axis.spatial(7, i)
                A[vi + 1] = A[vi + 1] + A[vi]

    sch = weft.Schedule(scan)
    with pytest.raises(weft.ScheduleError) as caught:
        sch.parallel(sch.get_loops("A")[0])
    assert "test_script_errors.py:" in str(caught.value)
    assert "for i in range(7):" in str(caught.value)


def test_words_at_run_time_say_where_they_belong() -> None:
    with pytest.raises(CompileError, match=r"T.grid is read from the source of a function under @T.prim_func"):
        T.grid(3, 4)
    with pytest.raises(AttributeError, match=r"T.axis has no 'spatal', did you mean 'spatial'"):
        _ = T.axis.spatal


def test_sources_that_are_not_at_hand() -> None:
    code = "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    pass\n"
    with pytest.raises(CompileError, match="the source of 'f' is not available"):
        exec(compile(code, "<nowhere>", "exec"), {"T": T})
    linecache.cache["<cell>"] = (len(code), None, code.replace("pass", "B[0] = 1").splitlines(keepends=True), "<cell>")
    with pytest.raises(CompileError, match=r"(?s)<cell>:3:5: error: unknown name 'B'.*    B\[0\] = 1\n    \^"):
        exec(compile(code, "<cell>", "exec"), {"T": T})


def test_decorators_say_what_they_stand_above() -> None:
    with pytest.raises(CompileError, match=r"@T.prim_func decorates a function, got 3"):
        T.prim_func(3)  # pyright: ignore
    with pytest.raises(CompileError, match="@ir_module decorates a class, got 3"):
        ir_module(3)  # pyright: ignore


def test_stores_point_at_themselves() -> None:
    module = parse("@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = 1\n    A[1] = 2\n", "two.py")
    stores = [op for op in module.walk() if isinstance(op, StoreOp)]
    assert [str(location_of(store)) for store in stores] == ["two.py:3:5", "two.py:4:5"]


LARGE = [
    "10**10**8",
    "9**9**9",
    "pow(9, 9**9)",
    "1 << 10**10",
    "3 * (-2)**4096",
    '"x" * 10**10',
    "10**10 * [0]",
    "list(range(10**12))",
    "sum(range(10**12))",
    "max(range(-(10**30), 10**30))",
    "round(5, -(10**10))",
    "math.factorial(10**9)",
    "math.prod(range(10**4))",
    "sum([[0]] * 10**4, [])",
    '"%99999999999d" % 5',
    "1" + " + 1" * 900,
]


@pytest.mark.parametrize("text", LARGE, ids=range(len(LARGE)))
def test_what_is_computed_is_bounded(text: str) -> None:
    """With names from outside, in a function, and at the top of a script: an error where it stands."""
    source = Source("outside.py", text)
    statement = source.parse().body[0]
    assert isinstance(statement, ast.Expr)
    with pytest.raises(CompileError, match=r"at most \d+|nested too deeply|text is not formatted|sum adds numbers"):
        Evaluator(source, {"math": math}).evaluate(statement.value)
    if "math" not in text:
        assert str(refusal(f"N = {text}\n" + in_function("pass"))).startswith("user.py:1:")
        assert str(refusal(in_function(f"N = {text}"))).startswith("user.py:3:")


@pytest.mark.parametrize(
    ("first", "step", "last"),
    [
        ("x = [1]", "x = [x, x]", 'T.func_attr({"x": x})'),
        ('x = {"a": 1}', 'x = {"a": x, "b": x}', "T.func_attr(x)"),
        ('x = "a"', "x = x + x", 'T.func_attr({"x": x})'),
        ("x = 3", "x = x * x", 'T.func_attr({"x": x})'),
        ("x = T.int64(1)", "x = T.max(x, x) + T.min(x, x)", "B[x] = 1"),
    ],
)
def test_names_do_not_make_values_that_grow_without_bound(first: str, step: str, last: str) -> None:
    error = refusal(in_function("\n".join([first, *[step] * 60, last])))
    assert "at most" in str(error) or "more than 4096 terms" in str(error)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("for i in range(2**63): pass", "the extent of i must fit 64 bits, got 9223372036854775808"),
        ("for i in range(-(2**63), 2**63 - 1): pass", "the extent of i must fit 64 bits, got 18446744073709551615"),
        ('X = T.alloc_buffer((2**70,), "float32")', "X: extent 0 must fit 64 bits, got 1180591620717411303424"),
    ],
)
def test_extents_fit_64_bits(statement: str, message: str) -> None:
    assert message in str(refusal(in_function(statement)))


WRONG = [
    'X = T.match_buffer(a, (8,), "float32", elem_offset=1.5)',
    'X = T.match_buffer(a, (8,), "float32", elem_offset=T.float32(0))',
    'X = T.match_buffer(a, (8,), "float32", elem_offset=[4])',
    'X = T.match_buffer(a, (8,), "float32", elem_offset=T.int64(4))',
    'X = T.match_buffer(a, (8,), "float32", elem_offset=A)',
    'X = T.match_buffer(a, (8,), "float32", buffer_type=n)',
    'X = T.match_buffer(a, (8,), "float32", axis_separators=n)',
    'X = T.match_buffer(a, (8,), "float32", strides=T.float32(3))',
    'X = T.match_buffer(a, (8,), "float32", align=n)',
    'X = T.match_buffer(a, (8,), "float32", scope=n)',
    "X = T.match_buffer(a, (8,), n)",
    "X = T.match_buffer(T.axis, (8,))",
    "X = T.match_buffer(a, T)",
    'X = T.alloc_buffer((8,), "float32", elem_offset=n)',
    'T.call_extern("f", n, dtype=n)',
    'T.call_extern("f", n, dtype=T)',
    "x = T.op(n)",
    'x = T.op("arith.addi", n, n, results=n)',
    'x = T.op("arith.addi", n, n, results=["i32"], properties=n)',
    "for i in T.serial(n, annotations=n): pass",
    "for i in T.thread_binding(4, thread=n): pass",
    "with T.block(n): pass",
    "T.func_attr(n)",
    'T.func_attr({"a": T})',
    "T.func_attr({n: 1})",
    "T.assume(n)",
    "A[0] = T.infinity(T)",
    "A[0] = T.Cast(n, n)",
    "A[0] = T.float32(T.axis)",
    "A[0] = T.exp(T.grid)",
]


@pytest.mark.parametrize("statement", WRONG)
def test_arguments_of_a_wrong_type_are_errors_where_they_stand(statement: str) -> None:
    text = f'@T.prim_func\ndef f(a: T.handle, A: T.Buffer((8,), "float32"), n: T.int32):\n    {statement}\n'
    error = refusal(text)
    assert str(error).startswith("user.py:3:"), error
    assert " object at 0x" not in str(error) and "/" not in error.message, error


@pytest.mark.parametrize("word", [*T.FUNCTIONS, *T.WORDS])
def test_every_word_refuses_wrong_types_at_its_place(word: str) -> None:
    """Or takes them: no argument makes it blame another place."""
    target = "A[0] = " if word in T.FUNCTIONS else ""
    for arguments in ("A", "T, n", '{}, 1, "x"', 'a, dtype="x"', "*n"):
        statement = f"{target}T.{word}({arguments})"
        text = f'@T.prim_func\ndef f(a: T.handle, A: T.Buffer((8,), "float32"), n: T.int32):\n    {statement}\n'
        assert str(refusal(text)).startswith("user.py:"), text
