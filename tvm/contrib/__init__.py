"""`tvm.contrib`: `clang.create_llvm`, and `utils.tempdir`."""
