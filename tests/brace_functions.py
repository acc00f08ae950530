"""brace_functions: the functions of JavaScript, CUDA and C, found by their braces.

No parser: literals and comments are blanked, brackets matched, and a block is a
function if what stands before it ends in an arrow, or in parentheses that belong to no
control statement. Brackets that do not match raise: a text that is misread is not
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CONTROL = {"if", "for", "while", "switch", "catch", "with", "constexpr"}
LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
LITERAL_OR_DIRECTIVE = re.compile(
    LITERAL.pattern + r"|^[ \t]*#[^\n]*(?<!\\)$", re.DOTALL | re.MULTILINE
)
"""With directives of one line; the others are macros, in which functions may be."""

REGULAR_EXPRESSION = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/")
TEMPLATE = re.compile(r"(?:\\.|(?!\$\{)[^`\\])*(`|\$\{)", re.DOTALL)
BEFORE_AN_OPERAND = set("=(,:;!&|?{}[+<>") | {""}
ARROW = re.compile(r"=>\s*$")
PARAMETERS = re.compile(r"\)(\s*(const|noexcept|override|mutable|->[\w:<>&*\s]+))*\s*$")
NAME = re.compile(r"([\w$]+)\s*(?:=\s*(?:async\s*)?)?$")
CLOSING = {")": "(", "]": "[", "}": "{"}


def functions_in_braces(text: str, *, javascript: bool) -> Iterator[tuple[str, int]]:
    """Each function with its lines, from its head to its closing brace.

    Raises
    ------
    ValueError
        The brackets do not match.
    """
    code = without_literals(text, javascript=javascript)
    # Of each open bracket: where it is, and where the statement inside it starts.
    stack: list[tuple[int, int]] = [(-1, 0)]
    for match in re.finditer(r"[(){};\[\]]", code):
        at, bracket = match.start(), match[0]
        if bracket in "([{":
            stack.append((at, at + 1))
        elif bracket != ";":
            opened, _ = stack.pop()
            if opened < 0 or code[opened] != CLOSING[bracket]:
                raise ValueError(f"{bracket} closes nothing, at character {at}")
            if bracket == "}":
                head = code[stack[-1][1] : opened]
                if is_function(head):
                    first = opened - len(head.lstrip())
                    yield name_of(head), code.count("\n", first, at) + 1
        if bracket in "};":
            stack[-1] = stack[-1][0], at + 1
    if len(stack) > 1:
        raise ValueError(f"{len(stack) - 1} brackets are not closed")


def is_function(head: str) -> bool:
    """Whether a block after `head` is the body of a function."""
    if ARROW.search(head):
        return True
    return bool(PARAMETERS.search(head)) and name_of(head) not in CONTROL


def name_of(head: str) -> str:
    """The word before the last parentheses of `head`."""
    depth = 0
    for at in range(head.rfind(")"), -1, -1):
        depth += (head[at] == ")") - (head[at] == "(")
        if depth == 0:
            break
    found = NAME.search(head[:at].rstrip()) if ")" in head else None
    return found[1] if found else "a function without a name"


def without_literals(text: str, *, javascript: bool) -> str:
    """Blank comments, directives, strings, templates and expressions; lines stay."""
    literal = LITERAL if javascript else LITERAL_OR_DIRECTIVE
    out: list[str] = []
    at, before = 0, ""
    inside: list[int] = []  # braces that are open in each ${} of a template
    while at < len(text):
        char, token = text[at], None
        if match := literal.match(text, at):
            token = match[0]
        elif javascript and (char == "`" or (char == "}" and inside[-1:] == [0])):
            match = TEMPLATE.match(text, at + 1)
            if match is None:
                raise ValueError("a template is not closed")
            if char == "}":
                inside.pop()
            if match[1] != "`":
                inside.append(0)
            token = text[at : match.end()]
        elif javascript and char == "/" and before in BEFORE_AN_OPERAND:
            match = REGULAR_EXPRESSION.match(text, at)
            token = match[0] if match else None
        if token is None:
            if inside:
                inside[-1] += (char == "{") - (char == "}")
            out.append(char)
            at += 1
            before = before if char.isspace() else char
            continue
        out.append(re.sub(r"[^\n]", " ", token))
        at += len(token)
        if not token.startswith(("//", "/*")):
            before = "" if token.endswith("${") else '"'
    return "".join(out)
