"""Exports: headers, what is refused and why, and libraries that say what they are."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported_programs import COMPILER, needs_compiler

import weft
from weft import te
from weft.backends.llvm.object_file import object_symbols
from weft.runtime.export import loaded
from weft.runtime.export.header import c_header
from weft.runtime.export.library_text import library_text, read_library_text
from weft.runtime.export.program import Program
from weft.runtime.library import Library
from weft.support.call_preconditions import CallPrecondition
from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.support.target import Target

SIGNATURE = Signature(
    "int",
    (
        ArraySpec("X", "float32", ("n", 4), strides=("s", 1)),
        ArraySpec("double", "float16", (2, 3), "readwrite"),
        ScalarSpec("count", "int64", "n"),
        ScalarSpec("h", "float16"),
        ArraySpec("Y", "bool", (), "write"),
    ),
    ("n", "s"),
    1,
    (CallPrecondition("n % 4 == 0"),),
)


def increment(extent: int | te.Var = 16, name: str = "increment") -> weft.Schedule:
    x = te.placeholder((extent,), "float32", name="X")
    return weft.Schedule(te.create_func([x, te.compute((extent,), lambda i: x[i] + 1.0, name="Y")], name=name))


@pytest.fixture(scope="module")
def library() -> Library:
    return weft.build(increment().mod, target=Target.of_process(2))


def test_headers_say_what_callers_must_see_to() -> None:
    text = c_header([SIGNATURE], Target.parse("llvm -num-threads=3"), "my-file.h", parallel=True)
    head = "void weft_function_int("
    joint = ",\n" + " " * len(head)
    parameters = (
        *("const float *WEFT_RESTRICT X", "weft_f16 *WEFT_RESTRICT double_", "int64_t count", "_Float16 h"),
        *("bool *WEFT_RESTRICT Y", "int64_t n", "int64_t s"),
    )
    assert f"{head}{joint.join(parameters)});" in text
    for line in (
        "#ifndef WEFT_HEADER_my_2Dfile_2Eh",
        "X: float32[n][4], strides s, 1",
        "double_: inout float16[2][3]",
        "count: int64, the extent n",
        "Y: out bool[1]",
        "n: the extent n of X",
        "s: the stride s of X",
        "requires n % 4 == 0",
        "void weft_set_num_threads(int32_t count);",
        "what the target said (3)",
    ):
        assert line in text
    assert "weft_set_num_threads" not in c_header([SIGNATURE], Target(), "f.h", parallel=False)


@needs_compiler
def test_headers_check_requirements(tmp_path: Path) -> None:
    arguments = (ArraySpec("x", "float32", ("n", "m")), ArraySpec("s", "int64", (2,)), ScalarSpec("k", "int32"))
    facts = ("n % 4 == 0", 's.0 - k <= 100 or s.1 < min(m, 7) # block "b" requires it', "-7 <= k // 2")
    signature = Signature("f", arguments, ("n", "m", "s.0", "s.1"), 0, tuple(map(CallPrecondition, facts)))
    signature = replace(signature, temporaries=(CallPrecondition("bytes == 4 * n * m"),))
    (tmp_path / "f.h").write_text(c_header([signature], Target(), "f.h", parallel=False))
    calls = {
        (0, 4, 5, 100, 9): None,
        (0, 5, 5, 100, 9): "f requires n % 4 == 0; n is the extent n of x",
        (
            0,
            4,
            5,
            101,
            5,
        ): 'f requires s.0 - k <= 100 or s.1 < min(m, 7) # block "b" requires it; s.0 is element 0 of s; '
        "s.1 is element 1 of s; m is the extent m of x",
        (1, 4, 5, 101, 4): None,
        (-13, 4, 5, 0, 0): None,
        (-15, 4, 5, 0, 0): "f requires -7 <= k // 2",
        (0, 1 << 31, 1 << 29, 0, 0): None,
        (0, 1 << 31, 1 << 30, 0, 0): "f requires 4 * n * m <= 9223372036854775807 # bytes of temporaries have 64 bits; "
        "n is the extent n of x; m is the extent m of x",
    }
    tried = "".join(f"  try({', '.join(f'INT64_C({number})' for number in call)});\n" for call in calls)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "f.h"\n'
        "static void try(int64_t k, int64_t n, int64_t m, int64_t a, int64_t b) {\n"
        '  const char *problem = weft_check_f(k, n, m, a, b);\n  puts(problem ? problem : "None");\n}\n'
        f"int main(void) {{\n{tried}  return 0;\n}}\n"
    )
    flags = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsanitize=undefined")
    program = str(tmp_path / "main")
    subprocess.run([str(COMPILER), *flags, str(tmp_path / "main.c"), "-o", program], check=True)
    found = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert found.splitlines() == [str(text) for text in calls.values()]


def test_signatures_as_text() -> None:
    target = Target.parse("llvm -num-threads=3 -opt-level=1")
    known = read_library_text(library_text([SIGNATURE], target))
    assert known.signatures == (SIGNATURE,)
    assert known.symbols == ("weft_function_int",)
    assert known.target == target
    with pytest.raises(CompileError, match="another version of weft"):
        read_library_text('{"weft": 99}')
    for text in ("", "[]", '{"weft": 3}', '{"weft": 3, "target": "llvm", "requires": [], "functions": [{}]}'):
        with pytest.raises(CompileError, match="not weft's"):
            read_library_text(text)


def test_what_cannot_be_exported_says_why(library: Library, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"f.txt': the suffix says what to export: .o, .obj, .so"):
        library.export(tmp_path / "f.txt")
    with pytest.raises(CompileError, match="unknown kind of export 'sharde', did you mean 'shared'"):
        library.export(tmp_path / "f.so", kind="sharde")
    with pytest.raises(CompileError, match="there is no folder"):
        library.export(tmp_path / "missing" / "f.o")
    with pytest.raises(CompileError, match="the compiler 'no-such-cc' is not on the PATH"):
        library.export(tmp_path / "f.so", compiler="no-such-cc")
    with pytest.raises(CompileError, match="a program in C is exported as c or h, got 'so'"):
        weft.build(increment().mod, target="c").export(tmp_path / "f.so")


@needs_compiler
@pytest.mark.parametrize("name", ["-x.a", "@x.so", "-Wl,x.so", "x,y.so", "-o.o", " .so", "x\ny.so", "@x.h"])
def test_names_of_outputs_are_no_options(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert library.export(name) == Path(name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert Path(name).stat().st_size > 100


@needs_compiler
@pytest.mark.parametrize("suffix", [".so", ".a", ".o", ".s", ".h"])
def test_failed_exports_leave_the_old_file(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"f{suffix}"
    path.write_text("old")
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(CompileError, match=rf"f\{suffix}' cannot be written: No space left on device"):
        library.export(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_outputs_are_written_where_links_and_devices_lead(library: Library, tmp_path: Path) -> None:
    target = tmp_path / "target.s"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.s"
    link.symlink_to(target)
    library.export(link)
    assert link.is_symlink() and "increment" in target.read_text() and target.stat().st_mode & 0o777 == 0o640
    read, write = os.pipe()
    with os.fdopen(read) as reader:
        library.export(f"/dev/fd/{write}", kind="header")
        os.close(write)
        assert "increment" in reader.read()
    with pytest.raises(CompileError, match="is a folder, expected a file to write"):
        library.export(tmp_path, kind="header")


def test_without_a_c_compiler_objects_can_still_be_made(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match=r"f.so' is linked by the system's C compiler, and there is no compiler"):
        library.export(tmp_path / "f.so")
    with pytest.raises(CompileError, match=r"f.a' is made by ar, which is not on the PATH"):
        library.export(tmp_path / "f.a")
    assert library.export(tmp_path / "f.o").read_bytes()[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe")


def test_a_kind_goes_before_the_suffix(library: Library, tmp_path: Path) -> None:
    assert "increment:" in library.export(tmp_path / "f.txt", kind="asm").read_text().replace("_increment", "increment")


def test_programs_in_c(tmp_path: Path) -> None:
    program = weft.build(increment().mod, target="c")
    assert "void increment(" in program.export(tmp_path / "f.c").read_text()
    assert "#pragma once" in program.export(tmp_path / "f.h").read_text()


def test_other_machines_are_exported_to_not_called(tmp_path: Path) -> None:
    foreign = weft.build(increment().mod, target="llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=sifive-u74")
    assert list(foreign) == ["increment"] and "increment" in foreign and len(foreign) == 1
    table = object_symbols(foreign.export(tmp_path / "f.o").read_bytes())
    assert table is not None and "increment" in table.defined
    assert "increment:" in foreign.get_source("asm")
    assert "riscv64" in foreign.export(tmp_path / "f.h").read_text()
    with pytest.raises(CompileError, match="'increment': code for riscv64-unknown-linux-gnu cannot run"):
        foreign["increment"]
    with pytest.raises(CompileError, match="not for riscv64-unknown-linux-gnu: name a cross compiler"):
        foreign.export(tmp_path / "f.so")


def test_threads_are_refused_where_there_are_none(tmp_path: Path) -> None:
    schedule = increment()
    schedule.parallel(schedule.get_loops("Y")[0])
    windows = weft.build(schedule.mod, target="llvm -mtriple=x86_64-pc-windows-msvc -num-threads=4")
    with pytest.raises(CompileError, match="run on POSIX threads, which x86_64-pc-windows-msvc lacks"):
        windows.export(tmp_path / "f.o")


@needs_compiler
def test_libraries_are_checked_when_they_are_loaded(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        weft.load(tmp_path / "missing.so")
    other = tmp_path / "other.so"
    other.write_text("no library")
    with pytest.raises(CompileError, match=r"other.so': not a shared library"):
        weft.load(other)
    source = tmp_path / "plain.c"
    source.write_text("int f(void) { return 1; }\n")
    subprocess.run([str(COMPILER), "-shared", "-fPIC", str(source), "-o", str(tmp_path / "plain.so")], check=True)
    with pytest.raises(CompileError, match=r"plain.so': says nothing about its functions"):
        weft.load(tmp_path / "plain.so")
    library.export(tmp_path / "f.so")
    assert list(weft.load(tmp_path / "f.so")) == ["increment"]
    with pytest.raises(CompileError, match="a library that was loaded has no source 'asm'"):
        weft.load(tmp_path / "f.so").get_source("asm")
    features = {name: False for name in loaded.process_features()}
    if features:
        monkeypatch.setattr(loaded, "process_features", lambda: features)
        with pytest.raises(
            CompileError, match=r"f.so' was compiled for .* and cannot run in this process: this CPU, .*, lacks "
        ):
            weft.load(tmp_path / "f.so")


@needs_compiler
def test_programs_find_the_library_wherever_they_are_started(library: Library, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin").mkdir()
    shared = library.export(tmp_path / "lib" / "libf.so")
    main = tmp_path / "main.c"
    main.write_text(
        "void increment(const float *, float *);\nint main(void) { float x[16] = {1}, y[16]; "
        "increment(x, y); return y[0] != 2; }\n"
    )
    for how in ([str(shared)], [f"-L{shared.parent}", "-lf", "-Wl,-rpath,$ORIGIN/../lib"]):
        program = tmp_path / "bin" / "main"
        subprocess.run([str(COMPILER), str(main), *how, "-o", str(program)], check=True)
        assert subprocess.run([str(program)], cwd="/", check=False).returncode == 0


def plus(number: float) -> weft.Library:
    x = te.placeholder((4,), "float32", name="X")
    return weft.build(te.create_func([x, te.compute((4,), lambda i: x[i] + number, name="Y")], name="plus"))


@needs_compiler
def test_a_path_that_was_exported_again_gives_the_new_code(tmp_path: Path) -> None:
    path = tmp_path / "f.so"
    zeros = np.zeros(4, np.float32)
    loads: list[weft.Library] = []
    for number in (1.0, 2.0):
        plus(number).export(path)
        loads.append(weft.load(path))
        assert loads[-1]["plus"](zeros).tolist() == [number] * 4
    path.write_bytes(b"")
    assert [load["plus"](zeros)[0] for load in loads] == [1, 2], "what is loaded stays"
    weft.build(increment(8, "plus").mod).export(path)
    assert weft.load(path)["plus"].signature.arrays[0].shape == (8,)


@needs_compiler
def test_damaged_libraries_are_refused_before_they_are_mapped(library: Library, tmp_path: Path) -> None:
    path = library.export(tmp_path / "f.so")
    whole = path.read_bytes()
    for size in (0, 3, 16, 63, 64, 100, 1000, 4096, len(whole) // 2, whole.index(b"increment")):
        path.write_bytes(whole[:size])
        with pytest.raises(CompileError, match=r"f.so': (not a shared library|cut off)"):
            weft.load(path)
    with pytest.raises(CompileError, match="'/dev/zero': not a regular file"):
        weft.load("/dev/zero")
    code, text = whole.index(b'{"weft": 3'), whole.index(b'"name": "increment"')
    for at in (0x10, 0x18, 0x20, 0x36, 0x50, 0x200, code + 30, text + 9, text + 60):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CompileError, match=r"f.so': (damaged|cut off|says nothing)"):
            weft.load(path)
    path.write_bytes(whole)
    subprocess.run(["strip", str(path)], check=True)
    assert path.read_bytes() != whole
    assert weft.load(path)["increment"](np.zeros(16, np.float32))[0] == 1


@needs_compiler
def test_undefined_functions_are_named_when_a_library_is_linked(tmp_path: Path) -> None:
    text = "declare void @missing_one()\ndefine void @f() {\n call void @missing_one()\n ret void\n}\n"
    program = Program(text, (Signature("f", ()),), Target())
    (tmp_path / "f.so").write_text("old")
    with pytest.raises(CompileError, match=r"cannot make '.*f.so':[^$]*missing_one"):
        program.export(tmp_path / "f.so")
    assert (tmp_path / "f.so").read_text() == "old"
    program.export(tmp_path / "f.o")
