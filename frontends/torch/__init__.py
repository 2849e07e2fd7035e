"""Models of PyTorch as graphs."""
