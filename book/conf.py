"""conf: the offline site. Sphinx, MyST-NB and sphinx-book-theme; nothing from a CDN.

The contents are those of myst.yml. Notebooks run at build, and an error in one fails
it; their outputs are cached under a hash of the package, so that a change of the
package runs them again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

BOOK = Path(__file__).parent
ROOT = BOOK.parent
sys.path.insert(0, str(BOOK))

import answer_forms  # noqa: E402
import table_of_contents  # noqa: E402
from generate import generate  # noqa: E402
from kernels import use_files  # noqa: E402

generate()
contents = table_of_contents.read()


def hash_of(*folders: str) -> str:
    """Return a short hash of every file below `folders` that git would keep."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def mathjax() -> Path:
    """Put MathJax's one file, which a wheel carries, among the static files."""
    files = metadata.files("sphinx-mathjax-offline") or []
    source = next(file for file in files if file.name == "tex-svg-full.js").locate()
    target = BOOK / "_build" / "static" / "mathjax.js"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(source), target)
    return target


project = html_title = "fp4ref"
author = "the fp4ref authors"
copyright = "2026, the fp4ref authors. Text: CC BY 4.0. Code: Apache-2.0"

root_doc = str(Path(contents.root).with_suffix(""))
include_patterns = list(contents.files)
extensions = ["myst_nb", "sphinx.ext.githubpages"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
# A check also leaves its outcome for a program; the reader sees its text.
suppress_warnings = ["mystnb.unknown_mime_type"]

html_theme = "sphinx_book_theme"
made = [str(path) for path in BOOK.glob("_generated/static")]
html_static_path = ["static", str(mathjax().parent), *made]
html_extra_path = [str(path) for path in BOOK.glob("_generated/site")]
html_css_files = ["book.css"]
words = ["glossary_words.js", "exercise_ids.js", "progress.js"] if made else []
html_js_files = [*words, "book.js", "exercises.js"]
html_use_index = False
html_show_sourcelink = False
html_favicon = "static/favicon.svg"
html_context = {"default_mode": "auto"}  # else a fresh browser has no mode, and says so
html_theme_options = {
    "navbar_persistent": [],
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "home_page_in_toc": True,
    "show_toc_level": 1,
    "use_fullscreen_button": False,
}
mathjax_path = "mathjax.js"

# Kernels inherit this: players come out as plain HTML that needs no kernel.
os.environ["FP4REF_STATIC"] = "1"
os.environ["FP4REF_FRAMES"] = "../frames.html"
nb_execution_mode = "cache"
nb_execution_cache_path = str(
    BOOK / "_build" / f"notebooks-{hash_of('fp4ref', 'kernel')}"
)
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_mime_priority_overrides = [
    ("html", "application/vnd.jupyter.widget-view+json", None)
]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

use_files()


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the table of contents to the root page."""
    if docname == root_doc:
        source[0] += "\n\n" + table_of_contents.toctrees(contents) + "\n"


def add_exercises(app: Sphinx, pagename: str, *_: Any) -> None:
    """Give a notebook's page its exercises; the script makes forms of them."""
    if body := answer_forms.script(pagename):
        data = {"type": "application/json", "id": "fp4-exercises"}
        app.add_js_file(None, body=body, priority=100, **data)


def setup(app: Sphinx) -> None:
    """Register what this file adds."""
    app.connect("source-read", add_contents)
    app.connect("html-page-context", add_exercises)
