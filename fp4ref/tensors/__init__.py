"""tensors: block-scaled tensors, and their product outside the kernel."""
