"""Optimised code of the runtime, which the compile cache keeps, so that it is compiled once for a machine."""

from __future__ import annotations

import hashlib
import importlib
from typing import TYPE_CHECKING, Any

from weft.backends.llvm.compile import object_code
from weft.backends.llvm.jit import JitModule, jit_forever, keep_forever, link_objects
from weft.runtime.compile_cache import CompileCache, is_switched_off
from weft.support.machine import base_features
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping


def optimised_forever(text: str, exported: str, symbols: Mapping[str, int]) -> JitModule:
    """Code for this process's CPU that exports one function and is never freed, as of `jit_forever`. Without a cache it
    is not optimised, because every process would take the time to do so."""
    if is_switched_off():
        return jit_forever(text, 0, symbols)
    store, target = CompileCache.of_user(), Target.of_process(1)
    key = _key(text, target)
    code = store.load_code(key)
    if code is None:
        code = object_code(text, target)
        store.store_code(key, code)
    module = link_objects((code,), [exported], symbols, forever=True)
    keep_forever(module)
    return module


def _key(text: str, target: Target) -> str:
    llvm: Any = importlib.import_module("llvmlite.binding")
    parts = [str(llvm.llvm_version_info), target.triple, target.cpu, base_features(target.triple, target.cpu), text]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
