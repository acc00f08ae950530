"""probes: small CUDA kernels that ask silicon what the emulator claims.

Each ``.cu`` file has a Python twin that states the inputs and says, with
`fp4ref.hardware` or `fp4ref.numerics`, what must come out. The same calls run on a GPU
and, as compiled PTX, on the emulator's own SM. ``python -m probes.record`` runs
them all on a GPU and writes the transcripts that the tests replay.
"""
