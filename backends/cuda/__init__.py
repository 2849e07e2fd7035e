"""CUDA C++ for NVIDIA GPUs, and its compilation by NVRTC."""
