"""Graph functions as pictures: boxes for operations, arrows for tensors."""
