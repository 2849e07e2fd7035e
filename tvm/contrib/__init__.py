"""`tvm.contrib`: `clang.create_llvm`, and `utils.tempdir`."""

from weft.tvm.absent import refuses

__getattr__ = refuses(__name__)
