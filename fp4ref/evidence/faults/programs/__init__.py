"""programs: small kernels of the gallery, each as Python warps and as PTX."""
