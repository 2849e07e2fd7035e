"""Names of a program in every language: nothing that a name holds becomes part of the text around it."""

import random
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import llvmlite.binding as llvm
import pytest
import reserved_names
from exported_programs import COMPILER, needs_compiler
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp

import weft
from weft.backends.c.emit import emit_module as emit_c
from weft.backends.c_family.kernels import emit_kernels
from weft.backends.cuda.nvrtc import MissingCompilerError, compile_ptx
from weft.backends.llvm.emit import emit_module as emit_llvm
from weft.backends.llvm.object_file import object_symbols
from weft.backends.names import KEYWORDS, identifier, in_comment, is_identifier, reserved, symbol_name
from weft.dialects.low import PARAMS, ParamAttr, params_of
from weft.dialects.low_kernel import KERNEL, KernelAttr
from weft.dialects.low_signature import signature_of
from weft.runtime.export.header import c_header
from weft.runtime.export.program import Program
from weft.support.errors import CompileError
from weft.support.target import Target

PIECES = (
    *("*/", "/*", "//", "\n", "\r", "\r\n", "\\", "\\\n", "\\\r\n", "??/", "??/\n", "\t", "\x00", "\x7f", '"', "'"),
    *("`", "\u0085", "\u2028", "\u202e", "é", "漢", "\U0001f600", "%", "%s", "@", "$", "#", "!", ";", "{", "}", "("),
    *(")", "<", ">", ",", " ", "int evil;", "void evil(void) {}", "define void @evil() { ret void }", "linux", "unix"),
    *("@evil = global i8 0", "#define void evil", "A", "weft_alloc", "__x", "_", "0", "fork", "int", "kernel", "errno"),
    *("float4", "get_global_id", "threadIdx", "llvm.exp.f32"),
)


def names(count: int, seed: int) -> list[str]:
    """Distinct names: each piece, and random strings of pieces."""
    rng = random.Random(seed)
    found = dict.fromkeys((*PIECES, "evil*/", "*/\nint evil;/*", "x\\\nint evil;", "x??/", "x\\"))
    while len(found) < count:
        found["".join(rng.choices(PIECES, k=rng.randint(2, 5)))] = None
    return list(found)


def program(called: Sequence[str], kernel: bool) -> ModuleOp:
    """For each name a function, with an argument, a block and a constant of the name."""
    mark = (
        '"low.kernel" = #low.kernel<[32, 1, 1], source = "x">'
        if kernel
        else ('low.params = [#low.param<"x", memref<4xf32>, readwrite, []>]')
    )
    functions = "".join(
        f"""
        "memref.global"() <{{sym_name = "g{number}", sym_visibility = "private", type = memref<4xf32>, constant,
          initial_value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}}> : () -> ()
        func.func @f{number}(%A: memref<4xf32>) attributes {{{mark}}} {{
          %c0 = arith.constant 0 : index
          %g = memref.get_global @g{number} : memref<4xf32>
          %x = memref.load %g[%c0] : memref<4xf32>
          memref.store %x, %A[%c0] : memref<4xf32>
          func.return
        }}"""
        for number in range(len(called))
    )
    module = weft.parse(f"builtin.module {{{functions}\n}}")
    ops = iter(list(module.ops))
    for name in called:
        data, function = next(ops), next(ops)
        assert isinstance(data, GlobalOp) and isinstance(function, FuncOp)
        data.properties["sym_name"] = StringAttr(f"{name} data")
        function.properties["sym_name"] = StringAttr(name)
        for op in function.walk():
            if isinstance(op, GetGlobalOp):
                op.properties["name"] = SymbolRefAttr(f"{name} data")
        if kernel:
            function.attributes[KERNEL] = KernelAttr.of((32, 1, 1), name)
        else:
            (param,) = params_of(function)
            function.attributes[PARAMS] = ArrayAttr([ParamAttr(StringAttr(name), *param.parameters[1:])])
    return module


CALLED = names(90, 7)


def check_symbols(symbols: Iterable[str], expected: Iterable[str]) -> None:
    assert sorted(set(symbols)) == sorted(expected)


def test_llvm_text_defines_what_the_module_does(tmp_path: Path) -> None:
    text = emit_llvm(program(CALLED, kernel=False), Target("llvm"))
    parsed = llvm.parse_assembly(text)
    check_symbols((f.name for f in parsed.functions), map(symbol_name, CALLED))
    assert len(list(parsed.global_variables)) == len(CALLED)
    assert len(set(map(symbol_name, CALLED))) == len(CALLED)
    assert all(map(is_identifier, map(symbol_name, CALLED)))


@needs_compiler
@pytest.mark.parametrize("standard", ["-std=c99", "-std=gnu17"])
def test_c_text_defines_what_the_module_does(tmp_path: Path, standard: str) -> None:
    source = emit_c(program(CALLED, kernel=False), Target("c"))
    file, code = tmp_path / "f.c", tmp_path / "f.o"
    file.write_text(source.text)
    (tmp_path / "f.h").write_text(source.header)
    flags = ["-Wall", "-Werror", "-Wno-unused-variable", "-trigraphs", "-c"]
    command = [str(COMPILER), standard, *flags, str(file), "-o", str(code)]
    subprocess.run(command, check=True)
    table = object_symbols(code.read_bytes())
    assert table is not None
    check_symbols(table.defined, (source.symbols[name] for name in CALLED))
    check_declarations(tmp_path / "f.h", [source.symbols[name] for name in CALLED])


def check_declarations(header: Path, expected: Sequence[str]) -> None:
    """What a header declares, in C and C++, after the headers of the system."""
    uses = "".join(f"  keep((void *){name});\n" for name in expected)
    system = "".join(f"#include <{name}.h>\n" for name in ("complex", "math", "signal", "stdio", "stdlib", "unistd"))
    text = f'{system}#include "{header}"\nvoid keep(void *);\nvoid all(void) {{\n{uses}}}\n'
    for compiler, language, keep in ((COMPILER, "c", "keep"), ("c++", "c++", "_Z4keepPv")):
        flags = ["-Wall", "-Werror", "-trigraphs", "-fno-pic", "-c"]
        command = [str(compiler), "-x", language, *flags, "-o", f"{header}.o", "-"]
        subprocess.run(command, input=text, text=True, check=True)
        table = object_symbols(Path(f"{header}.o").read_bytes())
        assert table is not None
        check_symbols(table.undefined, {*expected, keep})


@needs_compiler
def test_headers_declare_what_objects_define(tmp_path: Path) -> None:
    module = program(CALLED, kernel=False)
    signatures = [signature_of(op) for op in module.ops if isinstance(op, FuncOp)]
    exported = Program(emit_llvm(module, Target()), tuple(signatures), Target())
    table = object_symbols(exported.export(tmp_path / "f.o").read_bytes())
    assert table is not None
    check_symbols(table.defined, map(symbol_name, CALLED))
    (tmp_path / "f.h").write_text(c_header(signatures, Target(), "f.h", parallel=False))
    check_declarations(tmp_path / "f.h", [symbol_name(name) for name in CALLED])


@needs_compiler
@pytest.mark.parametrize("kind", ["cuda", "opencl", "metal"])
def test_kernels_are_all_that_a_text_defines(kind: str) -> None:
    source = emit_kernels(program(CALLED, kernel=True), Target.parse(kind))
    command = [str(COMPILER), "-x", "c", "-trigraphs", "-fpreprocessed", "-dD", "-E", "-P", "-"]
    code = subprocess.run(command, input=source.text, capture_output=True, text=True, check=True).stdout
    kernels = [source.symbols[name] for name in CALLED]
    assert len(set(kernels)) == len(CALLED)
    check_symbols(re.findall(r"\bvoid (?:__launch_bounds__\(32\) )?(\w+)\(", code), kernels)
    assert re.search(r"\bevil\b", code) is None
    assert source.text.isascii()


@pytest.mark.slow
def test_opencl_compiles_kernels_of_any_name() -> None:
    cl = pytest.importorskip("pyopencl")
    source = emit_kernels(program(CALLED, kernel=True), Target.parse("opencl"))
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    built = cl.Program(context, source.text).build()
    check_symbols(built.kernel_names.split(";"), (source.symbols[name] for name in CALLED))


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_cuda_compiles_kernels_of_any_name(compiler: str, tmp_path: Path) -> None:
    source = emit_kernels(program(CALLED, kernel=True), Target.parse("cuda"))
    if compiler == "nvrtc":
        try:
            text = compile_ptx(source.text, "sm_80")
        except MissingCompilerError as error:
            pytest.skip(str(error))
    else:
        if shutil.which("nvcc") is None:
            pytest.skip("nvcc is not on the PATH")
        (tmp_path / "f.cu").write_text(source.text)
        subprocess.run(["nvcc", "-ptx", "-arch=sm_80", "f.cu"], cwd=tmp_path, check=True)
        text = (tmp_path / "f.ptx").read_text()
    check_symbols(re.findall(r"\.entry (\w+)\(", text), (source.symbols[name] for name in CALLED))
    assert re.search(r"\bevil\b", text) is None


def test_functions_from_outside_are_called_by_identifiers_alone() -> None:
    text = """
    func.func private @"x(); int evil(void"() -> f32
    func.func @f(%A: memref<4xf32>) attributes {low.params = [#low.param<"x", memref<4xf32>, readwrite, []>]} {
      %c0 = arith.constant 0 : index
      %x = func.call @"x(); int evil(void"() : () -> f32
      memref.store %x, %A[%c0] : memref<4xf32>
      func.return
    }"""
    with pytest.raises(CompileError, match=r"C has no way to call a function named 'x\(\); int evil\(void'"):
        emit_c(weft.parse(text), Target("c"))


def test_constants_do_not_take_the_names_of_functions_that_code_calls() -> None:
    module = program(["expf"], kernel=False)
    data = next(iter(module.ops))
    data.properties["sym_name"] = StringAttr("llvm.memcpy.p0.p0.i64")
    for op in module.walk():
        if isinstance(op, GetGlobalOp):
            op.properties["name"] = SymbolRefAttr("llvm.memcpy.p0.p0.i64")
    parsed = llvm.parse_assembly(emit_llvm(module, Target("llvm")))
    check_symbols((f.name for f in parsed.functions), ["weft_function_expf"])


def test_comments_end_where_they_should() -> None:
    rng = random.Random(3)
    for _ in range(300):
        shown = in_comment("".join(rng.choices(PIECES, k=6)))
        assert re.fullmatch(r"[ -~]*", shown)
        assert not re.search(r"\*/|/\*|\?\?|\\$", shown), shown
    assert in_comment("@mm(A: memref<?x4xf32> [n] read)") == "@mm(A: memref<?x4xf32> [n] read)"
    assert in_comment("a */ é\n??/") == "a *\\2F \\C3\\A9\\0A\\3F?/"


def test_names_that_headers_declare_are_reserved() -> None:
    """The names that the issue of a clash was about, whatever this system's headers declare."""
    for name in ("fork", "vfork", "execve", "dup2", "environ", "optarg", "kill", "nanosleep", "pthread_create", "FILE"):
        assert symbol_name(name) == f"weft_function_{name}"
    for kind, some in {
        "opencl symbols": {"mad24", "half4", "read_imagef", "atomic_add"},
        "opencl macros": {"CLK_LOCAL_MEM_FENCE", "M_PI_F"},
        "cuda symbols": {"rsqrtf", "float4", "make_float4", "norm3d"},
        "c macros": {"NULL", "stdin", "INT64_MAX"},
    }.items():
        assert some <= reserved(kind)
    assert {"class", "co_await", "char8_t", "bitand", "typeof"} <= KEYWORDS
    assert identifier("get_global_id") == "v_get_global_id"


@pytest.mark.slow
@needs_compiler
def test_the_list_of_names_is_what_its_sources_say() -> None:
    """`python tests/helpers/reserved_names.py` makes the list anew when this fails."""
    found = reserved_names.generated()
    checked = 0
    for kind, sources in found.items():
        language, _, what = kind.partition(" ")
        if what == "sources" and sources == reserved(kind):
            for other, known in found.items():
                if other.startswith(language):
                    checked += 1
                    assert known <= reserved(other), other
    if not checked:
        pytest.skip("the list was made from other versions of the headers")
