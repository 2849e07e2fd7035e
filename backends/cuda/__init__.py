"""CUDA C for NVIDIA GPUs, and what compiles it."""
