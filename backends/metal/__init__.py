"""The Metal target: kernels of a low module as Metal Shading Language text, without a compiler."""
