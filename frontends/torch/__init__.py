"""Models of PyTorch as graphs: the import of `torch.export` programs, and the converters of ATen operators."""
