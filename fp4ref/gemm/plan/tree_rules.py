"""Parts 1 and 7. tree_rules: which trees this kernel computes."""

from __future__ import annotations

from collections import Counter
from keyword import iskeyword

from fp4ref.arguments import shown
from fp4ref.gemm.fusion.callbacks import implements
from fp4ref.gemm.fusion.majorness import is_m_major
from fp4ref.gemm.fusion.node import Node, slot
from fp4ref.gemm.fusion.split_tree import SplitTree
from fp4ref.gemm.fusion.split_tree_fetch import SplitTreeFetch
from fp4ref.gemm.fusion.src_fetch import SrcFetch
from fp4ref.gemm.plan.rules import THIS_KERNEL, rule
from fp4ref.gemm.plan.values import Plan

_IS_TREE = "fusion is a tree"
_VISITOR = "CUTLASS sm90_visitor_tma_warpspecialized.hpp"
_LONGEST = 40
"""Characters of a name."""


def _tree(p: Plan) -> Node | None:
    asked = p.config.epilogue.fusion
    return asked if isinstance(asked, Node) else None


@rule(_IS_TREE, THIS_KERNEL, "fusion")
def _is_tree(p: Plan) -> str | None:
    asked = p.config.asked("fusion")
    if asked is None or isinstance(asked, Node):
        return None
    return (
        f"fusion={shown(asked)}: a tree of fp4ref.gemm.fusion is needed, as "
        "build(relu(alpha * acc)) gives one. Use fusion=None"
    )


_FORMULA = {"beta": 0.0, "bias": False, "activation": None}


@rule("a tree is the whole formula", THIS_KERNEL, _IS_TREE, "fusion", *_FORMULA)
def _whole(p: Plan) -> str | None:
    if _tree(p) is None:
        return None
    for name, nothing in _FORMULA.items():
        if p.config.asked(name) != nothing:
            return (
                f"{name}={shown(p.config.asked(name))} with a tree: the tree says what "
                f"is computed. Use {name}={nothing}, and put it into the tree"
            )
    return None


@rule("the tree's C has C's format", _VISITOR, _IS_TREE, "fusion", "c_format")
def _source(p: Plan) -> str | None:
    asked = p.config.asked("c_format")
    for node in _sources(p):
        if node.element != asked or asked is None:
            return (
                f"c_format={shown(asked)} with a tree that reads C as "
                f"{node.element}: C has one format. Use build(tree, c='f32')"
            )
    return None


def _sources(p: Plan) -> list[SrcFetch]:
    tree = _tree(p)
    every = [] if tree is None else tree.walk()
    return [node for node in every if isinstance(node, SrcFetch)]


@rule("a tree reads C once", "a stage of C is released once", _IS_TREE, "fusion")
def _c_once(p: Plan) -> str | None:
    count = len(_sources(p))
    if count < 2:
        return None
    return f"a tree with C in {count} places: a stage of C is read once. Factor C out"


@rule("a name is one node's", "a C++ identifier", _IS_TREE, "fusion")
def _names(p: Plan) -> str | None:
    tree = _tree(p)
    if tree is None:
        return None
    by_name: dict[str, set[Node]] = {}
    for node in tree.walk():
        if slot("bias") in node.template:
            return "a broadcast without a name: a tree names it. Use row('bias')"
        for each in node.arguments:
            name = each.name
            if not isinstance(name, str) or not name.isidentifier():
                return f"a node is called {shown(name)}: letters, digits and _ only"
            if not name.isascii() or iskeyword(name) or len(name) > _LONGEST:
                return f"a node is called {shown(name)}: a short ASCII name is needed"
            by_name.setdefault(name, set()).add(node)
    for name, nodes in by_name.items():
        if len(nodes) > 1:
            kinds = " and ".join(sorted(type(node).__name__ for node in nodes))
            return f"{kinds} are both called {name!r}: give them two names"
    return None


@rule("a value is stored once", _VISITOR, _IS_TREE, "fusion")
def _stored_once(p: Plan) -> str | None:
    tree = _tree(p)
    counts = Counter(node for node in tree.walk() if node.stores) if tree else {}
    for node, count in counts.items():
        if count > 1:
            name = node.arguments[0].name
            return (
                f"the tree stores {name!r} {count} times: what is stored or reduced "
                "must be in one place. Pipe the value where it is used once"
            )
    return None


_VOID = "CUTLASS sm90_epilogue_tma_warpspecialized.hpp: 'SmemElementD is void'"


@rule("a kernel stores something", _VOID, _IS_TREE, "fusion", "d_format")
def _stores(p: Plan) -> str | None:
    tree = _tree(p)
    stores = tree is not None and any(node.stores for node in tree.walk())
    if p.config.asked("d_format") is not None or stores:
        return None
    what = "without a tree" if tree is None else "with a tree that stores nothing"
    return (
        f"d_format=None {what}: nothing would be left. Use d_format='f32', or a tree "
        'with a node that stores or reduces, as | aux("y")'
    )


@rule("what nodes send goes with D", _VISITOR, _IS_TREE, "fusion", "d_format")
def _sent(p: Plan) -> str | None:
    tree = _tree(p)
    if tree is None or p.config.asked("d_format") is not None:
        return None
    for node in tree.walk():
        if implements(node, "tma_store"):
            return (
                f"d_format=None with {type(node).__name__}: its tma_store is committed "
                "with the store of D, and there is none. Use d_format='f32'"
            )
    return None


@rule("a tree has one branch", THIS_KERNEL, _IS_TREE, "fusion")
def _one_branch(p: Plan) -> str | None:
    tree = _tree(p)
    every = [] if tree is None else list(tree.walk())
    splits = [node for node in every if isinstance(node, SplitTree)]
    if len(splits) > 1:
        return f"a tree with {len(splits)} branches: one value is shared. Use one"
    inside = list(splits[0].b.walk()) if splits else []
    fetches = sum(isinstance(node, SplitTreeFetch) for node in every)
    if fetches != sum(isinstance(node, SplitTreeFetch) for node in inside):
        return "SplitTreeFetch outside of a branch: nothing is shared there. Use branch"
    return None


@rule("a thread has a row of D", THIS_KERNEL, _IS_TREE, "fusion", "tmem_load")
def _rows(p: Plan) -> str | None:
    """With pairs of four rows, loads, masks and sums would each need a second form.

    A node loads or stores 16 bytes of one row, and a sum or a maximum of a column goes
    over the 32 threads of a warp: both are said of the rows that a thread has.
    """
    asked = p.config.epilogue.tmem_load
    if _tree(p) is None or asked == "32x32b":
        return None
    return (
        f"tmem_load={shown(asked)} with a tree: its nodes count rows and columns of D "
        "as a thread has them. Use tmem_load=32x32b"
    )


@rule("the plan says how D lies", THIS_KERNEL, _IS_TREE, "fusion")
def _majorness(p: Plan) -> str | None:
    tree = _tree(p)
    if tree is None or not any(is_m_major(node) for node in tree.walk()):
        return None
    return "a node with m_major=True: the plan sets it. Use store='transposed'"
