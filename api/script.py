"""Programs as Python script: functions of block loops, read from their source and printed back.

from weft.script import ir_module, tir as T

@ir_module
class Module:
    @T.prim_func
    def relu(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = T.max(A[vi], T.float32(0))

print(weft.script.script(Module))
"""

from weft.frontends.script import ir, tir
from weft.frontends.script.decorators import ir_module, prim_func
from weft.frontends.script.parsing import parse
from weft.frontends.script.printer import print_script
from weft.frontends.script.show import Script, show

script = print_script

__all__ = ["Script", "ir", "ir_module", "parse", "prim_func", "print_script", "script", "show", "tir"]
