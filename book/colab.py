"""colab: notebook 00 on Colab, if the project says where its repository is.

The address is ``Repository`` under ``[project.urls]`` in ``pyproject.toml``. With one,
``python book/colab.py`` gives the notebook a link, and a first cell that installs the
package where it is missing; without one it takes both away. The link is text: no image
is fetched.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "notebooks" / "00_start_here.ipynb"

_LINK = re.compile(r"\n\n\[Open in Colab\]\([^)]*\)")
_INSTALL = re.compile(r"^import subprocess.*?\nfrom fp4ref", re.S)


def repository(project: Path = ROOT / "pyproject.toml") -> str:
    """Return the configured address of the repository; empty without one.

    Raises
    ------
    ValueError
        It is none of GitHub, which is where Colab opens notebooks from.
    """
    urls = tomllib.loads(project.read_text("utf-8"))["project"].get("urls", {})
    address = str(urls.get("Repository", "")).removesuffix("/").removesuffix(".git")
    if address and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", address):
        raise ValueError(
            f"{project.name}: Repository is {address!r}; Colab opens "
            "https://github.com/OWNER/NAME"
        )
    return address


def on_colab(document: dict[str, Any], address: str) -> dict[str, Any]:
    """Return the notebook with what Colab needs, or without it if there is no address.

    Parameters
    ----------
    document
        The notebook's JSON; it is not changed.
    """
    made: dict[str, Any] = json.loads(json.dumps(document))
    by_id = {cell["id"]: cell for cell in made["cells"]}
    title = _LINK.sub("", "".join(by_id["title"]["source"]))
    start = _INSTALL.sub("from fp4ref", "".join(by_id["start"]["source"]))
    if address:
        title += f"\n\n[Open in Colab]({_opened(address)})"
        start = _install(address) + start
    for id, text in (("title", title), ("start", start)):
        by_id[id]["source"] = text.splitlines(keepends=True)
    return made


def _opened(address: str) -> str:
    path = f"blob/main/notebooks/{NOTEBOOK.name}"
    where = address.replace("https://github.com", "github")
    return f"https://colab.research.google.com/{where}/{path}"


def _install(address: str) -> str:
    return f"""import subprocess
import sys
from importlib.util import find_spec

if find_spec("fp4ref") is None:  # a machine that has the notebook only
    package = "fp4ref[lab] @ git+{address}"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", package], check=True)
"""


def write() -> None:
    """Write the notebook as the project's address wants it."""
    document = json.loads(NOTEBOOK.read_text("utf-8"))
    made = on_colab(document, repository())
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    NOTEBOOK.write_text(text, "utf-8")


if __name__ == "__main__":
    write()
