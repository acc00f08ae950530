"""checkpoint_error: the layers of a checkpoint, each a task of its own.

A worker is told names and reads the weight itself, so it needs the checkpoint at the
same path. This process alone writes results: a layer's file appears when the layer is
done, and a second run takes it instead of comparing again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4ref.errors import InputError
from fp4ref.fan_out import fan_out
from fp4ref.tensors.activations import read_activations
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.tensors.layer_error import LayerError, layer_error
from fp4ref.tensors.layer_results import LayerResults, code_digest, digest_of


@dataclass(frozen=True, slots=True)
class LayerTask:
    """What a worker is told of a layer.

    Attributes
    ----------
    threads
        Of the worker's, for one layer; None is one for each core.
    code
        Digest of the code that gave the task; a worker with other code refuses it.
    known
        Digest of the inputs of the result that is held already, or empty.
    """

    checkpoint: str
    layer: str
    recipes: tuple[str, ...] | None
    activations: str | None
    threads: int | None
    code: str
    known: str

    def __str__(self) -> str:
        return self.layer


def compare_layer(task: LayerTask) -> tuple[str, LayerError | None]:
    """Return the digest of a layer's inputs and its table; None if it is `known`.

    Raises
    ------
    InputError
        A file or a recipe cannot be used, or this is another version of fp4ref.
    """
    if task.code != code_digest():
        raise InputError(
            "a worker has another version of fp4ref or NumPy than this process; "
            "install the same on all"
        )
    weight = Checkpoint(task.checkpoint).load(task.layer)
    notes, recipes = list(weight.warnings), task.recipes
    if weight.quantised is not None:
        recipes = ()
        notes.append("stored as NVFP4: the floats it was made of are not here")
    x = None
    if task.activations is not None:
        x = read_activations(task.activations, weight.layer.shape[1])
    inputs = digest_of(task.code, task.layer, recipes, notes, weight.values, x)
    if inputs == task.known:
        return inputs, None
    found = layer_error(
        task.layer, weight.values, recipes, x=x, notes=notes, threads=task.threads
    )
    return inputs, found


def checkpoint_error(
    checkpoint: Checkpoint,
    names: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    *,
    activations: Path | None = None,
    results: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[LayerError]:
    """Compare the recipes on layers of a checkpoint.

    Parameters
    ----------
    names
        Weights; None is all that can be quantised.
    activations
        An .npy of floats (..., K).
    results
        A folder that keeps each layer's table, or has it from an earlier run.
    workers, scheduler
        As for `fan_out`.
    progress
        Called with the layers that are done and all of them.

    Returns
    -------
    list
        In the order of `names`; the same whatever worker had which layer.

    Raises
    ------
    InputError
        There is no such weight, or a file, recipe or option cannot be used.
    WorkersLost
        As for `fan_out`. What is in `results` stays.
    """
    usable = [n for n, layer in checkpoint.layers.items() if not layer.why_not]
    chosen = list(dict.fromkeys(names or usable))
    if not chosen:
        raise InputError(
            f"{checkpoint.path} has no weight that can be quantised; fp4ref walk "
            "--checkpoint lists why"
        )
    kept = LayerResults(results) if results is not None else None
    held = [kept.find(name) if kept else None for name in chosen]
    tasks = [
        LayerTask(
            str(checkpoint.path.resolve()),
            name,
            None if recipes is None else tuple(recipes),
            None if activations is None else str(activations.resolve()),
            None if workers is None and scheduler is None else 1,
            code_digest(),
            "" if known is None else known[0],
        )
        for name, known in zip(chosen, held, strict=True)
    ]
    finished = 0
    progress(0, len(tasks))

    def take(index: int, made: tuple[str, LayerError | None]) -> None:
        nonlocal finished
        inputs, layer = made
        if kept and layer is not None:
            kept.keep(inputs, layer)
        finished += 1
        progress(finished, len(tasks))

    made = fan_out(
        compare_layer, tasks, workers=workers, scheduler=scheduler, done=take
    )
    found = []
    for known, (_, layer) in zip(held, made, strict=True):
        if layer is None:
            assert known is not None
            layer = known[1]
        found.append(layer)
    return found
