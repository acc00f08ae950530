"""grader: scores of submitted notebooks, which no notebook can award to itself.

Each submission runs in a kernel of its own, in a temporary folder. After each cell that
answers an exercise the grader takes the answer out of the kernel, and compares it in
its own process with what the package computes: a notebook that replaces or deletes
`lessons.check`, or shows a verdict by itself, changes no score. The last cell that
answers an exercise counts. A cell that takes too long or ends the kernel is left out,
and the rest is run again. What did not run has not passed.

This runs other people's code with the rights of whoever starts it: use a container. The
package holds its own answers, and the students have the package; a score says that an
answer is right, not whose it is.
"""

from __future__ import annotations

import ast
import copy
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fp4ref.errors import InputError
from fp4ref.lessons.edition import is_solution
from fp4ref.lessons.exercise import of_lesson
from fp4ref.lessons.notebook_run import RedCellError, data_of, error_of, execute, read
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.transport import MIME, unpack
from fp4ref.lessons.verdict import judge

MOST_LEFT_OUT = 3
"""Cells of one notebook that may take too long or end the kernel."""

NOT_RUN = "it did not run"

_IMPORT = "import fp4ref.lessons.transport as _transport\n"


@dataclass(frozen=True, slots=True)
class Score:
    """Whether one exercise passed, and in words why not."""

    passed: bool
    why: str


@dataclass(frozen=True, slots=True)
class Probe:
    """A cell of the grader's: which exercise, and the cell that answers it."""

    exercise: str
    cell: int


@dataclass
class Graded:
    """One submission.

    Attributes
    ----------
    notebook
        Which notebook of fp4ref it is; '' if none.
    broken
        Why it could not be graded; '' if it was.
    cells
        What was wrong with cells, by their ids.
    """

    file: str
    notebook: str = ""
    broken: str = ""
    exercises: dict[str, Score] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> int:
        """Exercises that passed."""
        return sum(score.passed for score in self.exercises.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return asdict(self) | {"passed": self.passed, "of": len(self.exercises)}


def submissions(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield name and path of each notebook in files and folders.

    Raises
    ------
    InputError
        A path does not exist, or a folder holds no notebook.
    """
    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; name a notebook") from None
        if not stat.S_ISDIR(mode):
            yield path.name, path
            continue
        found = [
            each
            for each in sorted(path.rglob("*.ipynb"))
            if ".ipynb_checkpoints" not in each.parts
        ]
        if not found:
            raise InputError(f"{path} holds no notebook")
        yield from ((each.relative_to(path).as_posix(), each) for each in found)


def grade(name: str, path: Path, timeout: int = 60) -> Graded:
    """Run one submission and score its exercises; raises nothing.

    Parameters
    ----------
    timeout
        Seconds for each cell.
    """
    graded = Graded(name)
    try:
        notebook = read(path)
        graded.notebook = which_lesson(notebook, path)
        exercises = of_lesson(graded.notebook[:2])
        graded.exercises = {id: Score(False, NOT_RUN) for id in exercises}
        graded.exercises |= _run(notebook, set(exercises), timeout, graded)
    except InputError as error:
        graded.broken = str(error)
    except Exception as error:  # one submission must not stop the others
        graded.broken = f"{type(error).__name__}: {error}"
    return graded


def which_lesson(notebook: Any, path: Path) -> str:
    """Return the name of the lesson that a submission is, whatever its file name.

    Raises
    ------
    InputError
        It is none.
    """
    numbers = {lesson.number: name for name, lesson in LESSONS.items()}
    votes: Counter[str] = Counter()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            started = re.findall(r"""lessons\.start\(["'](\w+)["']""", cell.source)
            votes.update({name: 10 for name in started if name in LESSONS})
            numbered = re.findall(r"""check\(\s*["'](\d\d)\.\d+["']""", cell.source)
            votes.update(numbers[each] for each in numbered if each in numbers)
    if not votes:
        raise InputError(f"{path.name} is none of the notebooks of fp4ref")
    return votes.most_common(1)[0][0]


def _run(
    notebook: Any, ids: set[str], timeout: int, graded: Graded
) -> dict[str, Score]:
    """Run the cells that can run and score the answers that they gave."""
    cells, probes = _with_probes(notebook.cells, ids)
    left_out: dict[int, str] = {}
    while len(left_out) <= MOST_LEFT_OUT:
        kept = [
            i
            for i in range(len(cells))
            if i not in left_out and (i not in probes or probes[i].cell not in left_out)
        ]
        ran = copy.deepcopy(notebook)
        ran.cells = [copy.deepcopy(cells[i]) for i in kept]
        try:
            with tempfile.TemporaryDirectory() as folder:
                execute(ran, Path(folder), timeout, forgive=True)
        except RedCellError as error:
            at = kept[error.index]
            cell = probes[at].cell if at in probes else at
            left_out[cell] = error.reason
            graded.cells[cells[cell].id] = error.reason
            continue
        outputs = dict(zip(kept, ran.cells, strict=True))
        graded.cells |= {
            cell.id: raised
            for i, cell in outputs.items()
            if i not in probes and (raised := error_of(cell))
        }
        return {
            probe.exercise: _score(probe, outputs.get(i), outputs, left_out)
            for i, probe in probes.items()
        }
    raise InputError(f"more than {MOST_LEFT_OUT} cells take too long or end the kernel")


def _with_probes(cells: list[Any], ids: set[str]) -> tuple[list[Any], dict[int, Probe]]:
    """Put a cell that sends the answer after each cell that gives one."""
    from nbformat.v4 import new_code_cell

    found: list[Any] = []
    probes: dict[int, Probe] = {}
    for cell in cells:
        if cell.cell_type != "code" or is_solution(cell):
            continue
        found.append(cell)
        here = len(found) - 1
        for id, answer in _answers(cell, ids):
            probes[len(found)] = Probe(id, here)
            text = f"{_IMPORT}_transport.send({id!r}, ({answer}))"
            found.append(new_code_cell(text))  # type: ignore[no-untyped-call]
    return found, probes


def _answers(cell: Any, ids: set[str]) -> list[tuple[str, str]]:
    """Exercise and answer, as an expression, of a cell."""
    calls = [call for call in calls_of_check(cell.source) if call[0] in ids]
    named = re.fullmatch(r"exercise-(\d+)", cell.id)
    if calls or not named:
        return calls
    by_name = [id for id in ids if id.partition(".")[2] == named[1]]
    return [(id, "answer") for id in by_name]  # the call was deleted


def calls_of_check(text: str) -> list[tuple[str, str]]:
    """Return exercise and answer, as an expression, of each `lessons.check` call."""
    try:
        tree = ast.parse(re.sub(r"(?m)^[ \t]*[%!].*$", "", text))
    except SyntaxError:
        return []
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="check") | ast.Name(id="check"),
                args=[ast.Constant(value=str(id)), answer],
            ):
                found.append((id, ast.unparse(answer)))
    return found


def _score(
    probe: Probe, sent: Any, outputs: dict[int, Any], left_out: dict[int, str]
) -> Score:
    """Compare the answer that a probe has sent."""
    if sent is None:
        return Score(False, left_out[probe.cell])
    if error := error_of(outputs[probe.cell]):
        return Score(False, f"its cell raised {error}")
    answers = list(data_of(sent, MIME))
    if not answers:
        return Score(False, error_of(sent) or NOT_RUN)
    try:
        result = judge(probe.exercise, unpack(answers[-1]))
    except ValueError as error:
        return Score(False, str(error))
    return Score(result.passed, "" if result else result.message)
