"""What C, CUDA C++, OpenCL C and Metal share: one printer of low modules, told apart by tables of spellings."""
