"""Compilation targets: frozen records of machine facts.

`Target("llvm")` is the machine that runs Python; `Target.parse` parses `llvm -mcpu=znver4 -mattr=-avx512f
-num-threads=2` or `cuda -arch=sm_90`. `str(target)` parses back to an equal target on the same machine.

For the kinds `cuda`, `opencl` and `metal` the CPU is that of the machine that launches the kernels, and `gpu` has the
limits of the processor that runs them.

A vendor registers a kind of processor in a separate package, without changes to weft:

```python
weft.register_target_kind(weft.TargetKind("npu", load, scopes={"global.A_reg": 1 << 10}))
lib = weft.build(sch.mod, target="npu")
```
`load`, the backend, receives the module at low level, in which memory of the kind's scopes is `memref.alloca` with that
memory space.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from weft.support.argument_types import checked, checked_argument, checked_methods
from weft.support.errors import CompileError, did_you_mean
from weft.support.gpu_machine import DEFAULT_ARCHITECTURES, GPU_KINDS, GpuMachine, gpu_machine
from weft.support.machine import (
    MachineFacts,
    check_cpu,
    check_features,
    check_triple,
    has_feature,
    host_cpu,
    host_triple,
    is_process_cpu,
    machine_facts,
    process_cpu,
    process_features,
    required_features,
    triple_of_cpu,
)
from weft.support.processors import Processor, processor

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

OWN_KINDS: Final = ("llvm", "c", *GPU_KINDS)
"""The built-in kinds."""


@checked_methods
@dataclass(frozen=True)
class TargetKind:
    """A registered kind. Raises `CompileError` for a name that is invalid in a target, and for scopes of no size."""

    name: str
    load: Callable[..., object]
    """Returns a `weft.runtime.library.Library` for the module at low level and the `Target`. Raises `CompileError` for
    programs that the processor does not support."""
    scopes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Maps a memory scope to its capacity in bytes, which all allocations of a function in the scope share."""
    passes: tuple[ModulePass, ...] = ()
    """Passes on the low level that run before `load`."""

    def __post_init__(self) -> None:
        if self.passes:
            from xdsl.passes import ModulePass

            checked_argument("TargetKind", "passes", tuple[ModulePass, ...], self.passes)
        if not self.name.replace("_", "").isalnum():
            raise CompileError(f"a target kind is named by letters, digits and _, got '{self.name}'")
        for scope, size in self.scopes.items():
            if size < 1:
                raise CompileError(f"target kind {self.name}: scope '{scope}' must have at least 1 byte, got {size}")


_REGISTERED: Final[dict[str, TargetKind]] = {}


@checked
def register_target_kind(kind: TargetKind, *, override: bool = False) -> TargetKind:
    """Register a kind. Raises `CompileError` if the name is built in, or taken without `override`."""
    if kind.name in OWN_KINDS:
        raise CompileError(f"target kind '{kind.name}' is weft's own")
    if kind.name in _REGISTERED and not override:
        raise CompileError(f"a target kind '{kind.name}' is registered already; override=True replaces it")
    _REGISTERED[kind.name] = kind
    return kind


def unregister_target_kind(name: str) -> None:
    """Unregister a kind. Raises `CompileError` if it is not registered."""
    if _REGISTERED.pop(name, None) is None:
        raise CompileError(f"no target kind '{name}' is registered{did_you_mean(name, _REGISTERED)}")


def registered_kind(name: str) -> TargetKind | None:
    """Returns None for built-in and unknown kinds."""
    return _REGISTERED.get(name)


def target_kinds() -> tuple[str, ...]:
    return (*OWN_KINDS, *_REGISTERED)


def is_target_kind(name: str) -> bool:
    """Import installed packages, which may register the kind, if necessary. Raises `CompileError` for one that cannot
    be loaded."""
    if name not in target_kinds():
        from weft.support.packages import installed_universe  # start-up: 2 ms

        installed_universe()
    return name in target_kinds()


@checked_methods
@dataclass(frozen=True)
class Target:
    """A machine to compile for: `Target("llvm -mcpu=znver4")`, `Target(cpu="znver4")`.

    Fields that are empty (or 0) are filled in: from the host if the triple is the host's, else from LLVM's description
    of the CPU. The default triple is the host's, unless a well-known `cpu` is of another architecture: `apple-m1` is
    `arm64-apple-macosx`. The cpu `native` is the host's.

    `features` are only the differences from the CPU's own features, in LLVM's spelling (`+avx2,-avx512f`); the features
    of this process's CPU are those that it reports. Raises `CompileError` for an unknown kind, triple, CPU or feature,
    and for invalid numbers.
    """

    kind: str = "llvm"
    """The kind, optionally followed by options as on a command line."""
    triple: str = ""
    cpu: str = ""
    features: str = ""
    num_threads: int = 0
    """Threads of `parallel` loops; the number of cores unless given."""
    opt_level: int = 2
    """0 (fast to compile) to 3; 2 reaches the speed of 3 on scheduled code in a fraction of the compile time."""
    reassociate: bool = False
    """Whether floating-point sums may be reordered (results then differ in the last bits)."""
    vector_bytes: int = 0
    """Bytes of a SIMD register."""
    vector_registers: int = 0
    """The number of SIMD registers."""
    l1_bytes: int = 0
    """Bytes of one core's L1 data cache."""
    l2_bytes: int = 0
    l2_ways: int = 0
    """Associativity of L2."""
    l3_bytes: int = 0
    """Bytes of the last-level cache, shared by the cores; 0 if there is none."""
    cores: int = 0
    """Cores that this process may use."""
    arch: str = ""
    """Architecture of a CUDA processor, such as `sm_90`; `sm_80` unless given."""
    device: str = ""
    """The device that runs the kernels: its number, or part of its or its platform's name; the first unless given."""
    gpu: GpuMachine | None = None
    """Limits of kernels; those of the kind and architecture unless given, None for targets without kernels."""

    def __post_init__(self) -> None:
        limits = self._read_options()
        if not is_target_kind(self.kind):
            raise CompileError(f"unknown target kind '{self.kind}'{did_you_mean(self.kind, target_kinds())}")
        if self.opt_level not in range(4):
            raise CompileError(f"target option opt-level must be 0, 1, 2 or 3, got {self.opt_level}")
        for name in ("num_threads", *_FACTS):
            value: int = getattr(self, name)
            if value < 0:
                raise CompileError(f"target option {_option(name)} must not be negative, got {value}")
        triple = self.triple or triple_of_cpu(self.cpu)
        check_triple(triple)
        cpu = self.cpu or (NATIVE if triple == host_triple() else "generic")
        if cpu == NATIVE and triple != host_triple():
            raise CompileError(f"-mcpu={NATIVE} is the CPU of this machine, {host_triple()}, got -mtriple={triple}")
        cpu = host_cpu() if cpu == NATIVE else cpu
        check_cpu(triple, cpu)
        features = ",".join(part.strip() for part in self.features.split(",") if part.strip())
        check_features(triple, features)
        facts = machine_facts(triple, cpu, features)
        self._fill(triple=triple, cpu=cpu, features=features)
        for name in _FACTS:
            self._fill(**{name: getattr(self, name) or getattr(facts, name)})
        self._fill(num_threads=self.num_threads or self.cores)
        if self.kind in GPU_KINDS:
            self._fill(arch=self.arch or DEFAULT_ARCHITECTURES[self.kind])
            default = gpu_machine(self.kind, self.arch)
            self._fill(gpu=replace(self.gpu or default, **limits))
        elif limits or self.arch or self.device or self.gpu is not None:
            raise CompileError(
                f"target {self.kind} runs no kernels: it takes no -arch, no -device and no limits of them"
            )

    def _fill(self, **values: str | int | GpuMachine) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def architecture(self) -> str:
        return self.triple.split("-", 1)[0]

    def has_feature(self, name: str) -> bool:
        """Raises `CompileError` for an unknown feature of LLVM."""
        return has_feature(self.triple, self.cpu, self.features, name)

    @property
    def processor(self) -> Processor:
        return processor(self.cpu)

    @property
    def has_kernels(self) -> bool:
        return self.kind in GPU_KINDS

    @property
    def is_process(self) -> bool:
        """Whether this is this process's CPU, with unchanged features."""
        return is_process_cpu(self.triple, self.cpu) and not self.features

    @property
    def required_features(self) -> tuple[str, ...]:
        """The features that the code needs; empty if LLVM cannot detect them, or for another triple."""
        return required_features(self.triple, self.cpu, self.features) if self.triple == host_triple() else ()

    @property
    def obstacle(self) -> str:
        """The reason why code cannot run in this process; empty if it can."""
        if self.is_process:
            return ""
        if self.triple != host_triple():
            return f"code for {self.triple} cannot run in this process, which is {host_triple()}"
        lacking = [name for name in self.required_features if not process_features()[name]]
        if not lacking:
            return ""
        return f"code for {self.cpu} cannot run in this process: this CPU, {process_cpu()}, lacks {', '.join(lacking)}"

    @staticmethod
    def of_process(opt_level: int) -> Target:
        """Returns this CPU, whatever `WEFT_HOST_CPU` is."""
        return Target(triple=host_triple(), cpu=process_cpu(), opt_level=opt_level)

    @staticmethod
    def parse(text: str) -> Target:
        """Parse `kind -option=value ...`; flags need no value. Raises `CompileError`."""
        return _parsed(text, target_kinds())

    def _read_options(self) -> dict[str, int]:
        text = self.kind
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise CompileError(f"a target is written kind -option=value ..., got '{text}': {error}") from None
        if not words or words[0].startswith("-"):
            raise CompileError(f"a target starts with its kind, got '{text}'{did_you_mean('', target_kinds())}")
        values: dict[str, str | int | bool] = {}
        limits: dict[str, int] = {}
        for word in words[1:]:
            if not word.startswith("-"):
                raise CompileError(f"target option '{word}' must start with '-' in '{text}'")
            option, equals, value = word.lstrip("-").partition("=")
            name = _OPTIONS.get(option) or _LIMITS.get(option)
            if name is None:
                known = {**_OPTIONS, **_LIMITS}
                raise CompileError(f"unknown target option '-{option}' in '{text}'{did_you_mean(option, known)}")
            if name in values or name in limits:
                raise CompileError(f"target option '-{option}' occurs twice in '{text}'")
            if name not in ("reassociate",) and (not equals or not value):
                raise CompileError(f"target option '-{option}' needs a value: '-{option}=...' in '{text}'")
            if option in _LIMITS:
                limits[name] = _integer(option, value)
            else:
                values[name] = _option_value(option, name, value)
        defaults = {field.name: field.default for field in fields(self)}
        for name in values:
            if getattr(self, name) != defaults[name]:
                raise CompileError(f"target option {_option(name)} is given twice: {name}= and in '{text}'")
        self._fill(kind=words[0], **values)
        return limits

    def __str__(self) -> str:
        facts = machine_facts(self.triple, self.cpu, self.features)
        words = [self.kind, *self._gpu_words()]
        if self.triple != host_triple():
            words.append(f"-mtriple={self.triple}")
        # Kernels do not depend on their host, and tuning records are keyed by this text.
        is_host = self.has_kernels and self.triple == host_triple() and self.cpu == host_cpu()
        if not is_host:
            words.append(f"-mcpu={self.cpu}")
        if self.features:
            words.append(f"-mattr={self.features}")
        if not is_host or self.num_threads != self.cores:
            words.append(f"-num-threads={self.num_threads}")
        words.append(f"-opt-level={self.opt_level}")
        if self.reassociate:
            words.append("-reassociate")
        for name in _FACTS:
            if getattr(self, name) != getattr(facts, name):
                words.append(f"-{_option(name)}={getattr(self, name)}")
        return " ".join(words)

    def _gpu_words(self) -> list[str]:
        if self.gpu is None:
            return []
        words = [
            f"-{name}={shlex.quote(value)}" for name, value in (("arch", self.arch), ("device", self.device)) if value
        ]
        default = gpu_machine(self.kind, self.arch)
        for option, name in _LIMITS.items():
            if getattr(self.gpu, name) != getattr(default, name):
                words.append(f"-{option}={getattr(self.gpu, name)}")
        return words


NATIVE: Final = "native"
"""The name of the host's CPU in options of compilers."""
_FACTS: Final = tuple(field.name for field in fields(MachineFacts))
_SPELLINGS: Final = {"triple": "mtriple", "cpu": "mcpu", "features": "mattr"}


@lru_cache(maxsize=64)
def _parsed(text: str, kinds: tuple[str, ...]) -> Target:
    """Cached, because passes parse the same text repeatedly; the host does not change."""
    return Target(text)


def _option(name: str) -> str:
    return _SPELLINGS.get(name, name.replace("_", "-"))


_OPTIONS: Final = {_option(field.name): field.name for field in fields(Target) if field.name not in ("kind", "gpu")}
_LIMITS: Final = {
    _option(name): name
    for name in ("max_threads_per_block", "shared_bytes", "max_shared_bytes", "warp_size", "registers_per_thread")
}
"""Options for numbers of `Target.gpu`."""
_TEXTS: Final = frozenset((*_SPELLINGS, "arch", "device"))
_TRUTHS: Final = {"": True, "true": True, "1": True, "false": False, "0": False}


def _option_value(option: str, name: str, value: str) -> str | int | bool:
    if name in _TEXTS:
        return value
    if name == "reassociate":
        if value.lower() not in _TRUTHS:
            raise CompileError(f"target option '-{option}' must be true or false, got '{value}'")
        return _TRUTHS[value.lower()]
    return _integer(option, value)


def _integer(option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise CompileError(f"target option '-{option}' must be an integer, got '{value}'") from None
