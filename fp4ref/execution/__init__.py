"""execution: how a problem is run: on the emulator, by PTX, or on a device.

`runs` has the one function that runs a GEMM; `emulator`, `ptx` and `device` are its
backends, behind the protocol in `backend`; `traced_machine` is the machine with its
recorder.
"""
