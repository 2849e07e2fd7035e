"""Emission of low modules as C, CUDA C++, OpenCL C and Metal, each with its `Language`."""
