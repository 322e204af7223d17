"""NVIDIA GPUs through the CUDA driver. Nothing outside this package knows the vendor."""
