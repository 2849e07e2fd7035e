"""Native code for CPUs through LLVM."""
