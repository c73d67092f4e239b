"""What tests of device code share: runtimes, costs, and the attention that kernels are compared with."""
