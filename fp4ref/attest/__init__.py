"""attest: a ladder of small kernels, for the first hour on a Blackwell card.

Each rung asks one thing of the card and predicts every word of the answer; the fidelity
table says which rules a part of it shows.

- `question`, and the `..._rungs`: what is asked. The kernels are in ``kernel/attest``.
- `on_ptx`, `on_card`: where it runs; `worker` is the process of one rung.
- `ladder`: one rung after the other; `verdict`: a transcript against the model.
"""
