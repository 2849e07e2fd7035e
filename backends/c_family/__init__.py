"""Emission of low modules as C, CUDA C++, OpenCL C and Metal, which differ by a `Language` each."""
