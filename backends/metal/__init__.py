"""The Metal target: kernels of a low module as Metal Shading Language text, which nothing here compiles."""
