"""The OpenCL target: OpenCL C 1.2 for the kernels of a low module."""
