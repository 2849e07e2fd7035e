"""The host, the CPUs and features that LLVM supports, and vector sizes.

The host is the machine of this process, unless the environment variable `WEFT_HOST_CPU` names another CPU: then
programs are compiled for that CPU, and called only if the process's CPU has all required features. Caches and cores
stay those of the machine.

LLVM ignores an unknown CPU or feature with a warning on standard error, so names are checked here: against a table,
then against LLVM's list, which a short-lived process also prints to standard error.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from weft.support.errors import CompileError, did_you_mean
from weft.support.isolation import isolated

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMON_CPUS: Final = {
    "x86_64": (
        *("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "core2", "nehalem", "sandybridge", "ivybridge"),
        *("haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake", "cooperlake", "icelake-client"),
        *("icelake-server", "tigerlake", "alderlake", "sapphirerapids", "graniterapids"),
        *("znver1", "znver2", "znver3", "znver4", "znver5"),
    ),
    "aarch64": (
        *("cortex-a53", "cortex-a55", "cortex-a72", "cortex-a76", "cortex-a78", "cortex-x1", "neoverse-n1"),
        *("neoverse-n2", "neoverse-v1", "neoverse-v2", "a64fx", "apple-a14", "apple-m1", "apple-m2", "apple-m3"),
    ),
}
"""CPUs that LLVM has long supported, accepted without a query."""

_COMMON_ARCHITECTURES: Final = (
    *("x86_64", "aarch64", "arm64", "riscv64", "armv7", "powerpc64le", "wasm32", "s390x", "i686"),
)


@dataclass(frozen=True)
class MachineFacts:
    """The numbers that schedules depend on, sizes in bytes. `Target` has fields of the same names."""

    vector_bytes: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l2_ways: int
    l3_bytes: int
    cores: int


@cache
def host_triple() -> str:
    import llvmlite.binding as llvm

    return llvm.get_process_triple()


@cache
def host_cpu() -> str:
    """`WEFT_HOST_CPU`, else the process's. Raises `CompileError` if the variable names no CPU of this architecture."""
    name = os.environ.get("WEFT_HOST_CPU", "").strip()
    try:
        check_cpu(host_triple(), name or "generic")
    except CompileError as error:
        raise CompileError(f"WEFT_HOST_CPU: {error.message}") from error
    return name or process_cpu()


@cache
def process_cpu() -> str:
    """LLVM's name, or `generic`."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name() or "generic"


@cache
def process_features() -> dict[str, bool]:
    """Maps the features that LLVM can detect to whether this CPU has them; empty if that fails. AMX also needs the
    permission of the operating system."""
    import llvmlite.binding as llvm

    try:
        features = cast("dict[str, bool]", llvm.get_host_cpu_features())
    except RuntimeError:
        return {}
    if features.get("amx-tile") and not _may_use_tiles():
        features.update((name, False) for name in features if name.startswith("amx"))
    return dict(sorted(features.items()))


SYS_ARCH_PRCTL: Final = 158
ARCH_REQ_XCOMP_PERM: Final = 0x1023
XFEATURE_XTILEDATA: Final = 18


def _may_use_tiles() -> bool:
    """Request AMX for this process. (Linux, Documentation/arch/x86/xstate.rst)"""
    if sys.platform != "linux":
        return False
    system_call = ctypes.CDLL(None).syscall
    system_call.argtypes, system_call.restype = (ctypes.c_long,) * 3, ctypes.c_long
    return system_call(SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0


def is_process_cpu(triple: str, cpu: str) -> bool:
    return triple == host_triple() and cpu == process_cpu()


def base_features(triple: str, cpu: str) -> str:
    """Returns the features of the CPU of this process (a virtual machine may hide some), in LLVM's spelling; empty for
    others, whose names imply them."""
    if is_process_cpu(triple, cpu):
        return ",".join(("+" if present else "-") + name for name, present in process_features().items())
    return ""


@cache
def initialize_llvm(every_target: bool) -> None:
    """Register LLVM's targets; the host's takes 1 ms."""
    import llvmlite.binding as llvm

    if every_target:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()


@cache
def check_triple(triple: str) -> None:
    """Raises `CompileError` if LLVM has no back end for `triple`."""
    import llvmlite.binding as llvm

    if not (triple.isascii() and triple.isprintable()):
        raise CompileError(f"a target triple is printable ASCII, got {triple!a}")
    initialize_llvm(triple != host_triple())
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError as error:
        architecture = triple.split("-", 1)[0]
        hint = did_you_mean(architecture, _COMMON_ARCHITECTURES)
        raise CompileError(f"unknown target triple '{triple}': architecture '{architecture}'{hint}") from error


def triple_of_cpu(cpu: str) -> str:
    host = host_triple().split("-", 1)[0].replace("arm64", "aarch64")
    if cpu in _COMMON_CPUS.get(host, ()):
        return host_triple()
    if cpu.startswith("apple-"):
        return "arm64-apple-macosx" if host != "aarch64" else host_triple()
    kinds = [architecture for architecture, cpus in _COMMON_CPUS.items() if cpu in cpus]
    return f"{kinds[0]}-unknown-linux-gnu" if kinds else host_triple()


@cache
def check_cpu(triple: str, cpu: str) -> None:
    """Raises `CompileError`, with similar names, if LLVM does not support `cpu`."""
    architecture = triple.split("-", 1)[0]
    if cpu == "generic" or is_process_cpu(triple, cpu) or cpu in _COMMON_CPUS.get(architecture, ()):
        return
    known = known_names(triple).cpus
    if known and cpu not in known:
        raise CompileError(f"unknown CPU '{cpu}' for {triple}{did_you_mean(cpu, known)}")


@cache
def check_features(triple: str, features: str) -> None:
    """Raises `CompileError` unless each part is `+` or `-` and a known name."""
    names: list[str] = []
    for part in filter(None, features.split(",")):
        if part[0] not in "+-" or len(part) == 1:
            raise CompileError(f"target feature '{part}' must start with '+' or '-' in '-mattr={features}'")
        names.append(part[1:])
    if triple == host_triple() and all(name in process_features() for name in names):
        return
    known = known_names(triple).features
    for name in names:
        if known and name not in known:
            raise CompileError(f"unknown feature '{name}' for {triple}{did_you_mean(name, known)}")


@dataclass(frozen=True)
class KnownNames:
    """Empty if LLVM's list is not available."""

    cpus: frozenset[str]
    features: frozenset[str]


_ASK_LLVM: Final = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help", features="+help")
"""


@cache
def known_names(triple: str) -> KnownNames:
    """Ask a separate process (0.2 s, once per triple)."""
    if not sys.executable:
        return KnownNames(frozenset(), frozenset())
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _ASK_LLVM, triple], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return KnownNames(frozenset(), frozenset())
    cpus, _, features = answer.partition("Available features for this target:")
    return KnownNames(_listed(cpus.splitlines()), _listed(features.splitlines()))


def _listed(lines: Iterable[str]) -> frozenset[str]:
    found = (re.match(r"\s{2}(\S+)\s+- ", line) for line in lines)
    return frozenset(match[1] for match in found if match)


@cache
def machine_facts(triple: str, cpu: str, features: str) -> MachineFacts:
    """For another triple, sizes are typical."""
    vector_bytes, vector_registers = _vector_shape(triple, cpu, features)
    if triple == host_triple():
        l1, l2, ways, l3 = _host_caches()
        return MachineFacts(vector_bytes, vector_registers, l1, l2, ways, l3, host_cores())
    return MachineFacts(vector_bytes, vector_registers, 32 << 10, 512 << 10, _USUAL_WAYS, 0, 1)


def host_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_FEATURE_PROBE: Final = """
define i32 @with.{name}(i32 %x) "target-cpu"="{cpu}" "target-features"="{more}" {{
  %y = add i32 %x, 1
  ret i32 %y
}}
define i32 @probe.{name}(i32 %x) "target-cpu"="{cpu}" "target-features"="{features}" {{
  %y = call i32 @with.{name}(i32 %x)
  ret i32 %y
}}
"""


def has_feature(triple: str, cpu: str, features: str, name: str) -> bool:
    """`name` is LLVM's (`avx512vnni`, `dotprod`). Raises `CompileError` for an unknown feature."""
    check_features(triple, f"+{name}")
    return bool(_features_among(triple, cpu, features, (name,)))


@cache
def _features_among(triple: str, cpu: str, features: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a subset of `names`. LLVM exposes features only indirectly: a function is inlined if the caller has all
    features that it requires."""
    import llvmlite.binding as llvm

    initialize_llvm(triple != host_triple())
    own = ",".join(filter(None, (base_features(triple, cpu), features)))
    probes = "".join(
        _FEATURE_PROBE.format(name=name, cpu=cpu, features=own, more=",".join(filter(None, (own, f"+{name}"))))
        for name in names
    )
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=own, opt=1)
    context = llvm.create_context()
    with llvm.parse_assembly(probes, context) as module:
        module.triple = triple
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
        builder.getModulePassManager().run(module, builder)
        left = set(re.findall(r"call i32 @with\.(\S+)\(", str(module)))
    context.close()
    return tuple(name for name in names if name not in left)


_NOT_GENERATED: Final = frozenset(
    (
        *("cldemote", "clflushopt", "clwb", "clzero", "cmpccxadd", "enqcmd", "fsgsbase", "hreset", "invpcid", "kl"),
        *("lwp", "movdir64b", "movdiri", "mwaitx", "pconfig", "pku", "prefetchi", "ptwrite", "raoint", "rdpid"),
        *("rdpru", "rdrnd", "rdseed", "rtm", "serialize", "sgx", "shstk", "tsxldtrk", "uintr", "usermsr", "waitpkg"),
        *("wbnoinvd", "widekl", "xsave", "xsavec", "xsaveopt", "xsaves"),
    )
)
"""x86 features whose instructions LLVM generates only for their own intrinsics, so that code compiled for a CPU with
them runs on one without them."""

_GENERATED_TILES: Final = ("amx-tile", "amx-bf16", "amx-int8")


def required_features(triple: str, cpu: str, features: str) -> tuple[str, ...]:
    names = tuple(
        n for n in process_features() if n not in _NOT_GENERATED and (not n.startswith("amx") or n in _GENERATED_TILES)
    )
    return _features_among(triple, cpu, features, names)


_VECTOR_PROBE: Final = """
define <16 x float> @probe(<16 x float> %a, <16 x float> %b) {
  %c = fadd <16 x float> %a, %b
  ret <16 x float> %c
}
"""


def _vector_shape(triple: str, cpu: str, features: str) -> tuple[int, int]:
    """Returns bytes and number of vector registers. On x86 they follow from the widest register that LLVM uses for 16
    floats."""
    architecture = triple.split("-", 1)[0]
    is_x86 = architecture in ("x86_64", "i686")
    text = ""
    if features:  # contradictory features make LLVM end the process
        own = ",".join(filter(None, (base_features(triple, cpu), features)))
        text = isolated(f"code for {cpu} ({triple}) with -mattr={features}", vector_probe, triple, cpu, own).decode()
    elif is_x86:
        text = vector_probe(triple, cpu, base_features(triple, cpu)).decode()
    if not is_x86:
        return 16, 32
    if "%zmm" in text:
        return 64, 32
    return (32 if "%ymm" in text else 16), (16 if architecture == "x86_64" else 8)


def vector_probe(triple: str, cpu: str, features: str) -> bytes:
    import llvmlite.binding as llvm

    initialize_llvm(triple != host_triple())
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=0)
    # the global context is not thread-safe
    return machine.emit_assembly(llvm.parse_assembly(_VECTOR_PROBE, llvm.create_context())).encode()


_USUAL_WAYS: Final = 8


@cache
def _host_caches() -> tuple[int, int, int, int]:
    """Returns L1, L2, the ways of L2, and L3; typical numbers if the system does not report them."""
    sizes: dict[int, int] = {}
    ways: dict[int, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if (index / "type").read_text().strip() == "Instruction":
                continue
            level = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
            number = int(size.rstrip("KMG"))
            sizes[level] = number << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)
            ways[level] = int((index / "ways_of_associativity").read_text())
        except (OSError, ValueError):
            continue
    return sizes.get(1, 32 << 10), sizes.get(2, 512 << 10), ways.get(2) or _USUAL_WAYS, sizes.get(3, 0)
