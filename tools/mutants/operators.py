"""The mutants of a function: which operators apply to it, where, and what each makes of it.

A site is numbered by operator in the order of the source: `negate-condition#2` is the second
condition of the function. Sites of a nested function count for the function around it. An operator
changes the function's syntax tree in place.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}
EXTREMES = {"min": "max", "max": "min"}
LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
NO_CODE = frozenset({"annotation", "returns", "decorator_list", "type_comment", "msg"})
"""Fields of a node in which nothing is broken: no rule stands there."""


class Site(NamedTuple):
    """One place where one operator applies; `apply` changes the tree that it was found in."""

    operator: str
    apply: Callable[[], None]


class _Place(NamedTuple):
    """A node and where it hangs."""

    parent: ast.AST
    field: str
    position: int | None
    node: ast.AST

    def put(self, *nodes: ast.AST) -> None:
        if self.position is None:
            setattr(self.parent, self.field, nodes[0])
        else:
            getattr(self.parent, self.field)[self.position : self.position + 1] = nodes


def sites(roots: list[ast.AST]) -> Iterator[tuple[str, Site]]:
    """Each site below `roots` with its numbered operator, `swap-comparison#1`."""
    counted: Counter[str] = Counter()
    for root in roots:
        for place in _places(root):
            for site in _sites_at(place, root):
                counted[site.operator] += 1
                yield f"{site.operator}#{counted[site.operator]}", site


def _places(parent: ast.AST) -> Iterator[_Place]:
    for field, value in ast.iter_fields(parent):
        if field in NO_CODE:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not _is_text(node):
                yield _Place(parent, field, index, node)
                # Not of a formatted string: it is shown, and decides nothing.
                if not isinstance(node, ast.JoinedStr):
                    yield from _places(node)


def _is_text(node: ast.AST) -> bool:
    """A docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _sites_at(place: _Place, root: ast.AST) -> Iterator[Site]:
    yield from _of_conditions(place)
    yield from _of_values(place)
    yield from _of_statements(place, root)


def _of_conditions(place: _Place) -> Iterator[Site]:
    node = place.node
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield Site("negate-condition", lambda: setattr(node, "test", _negated(node.test)))
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], LEAVES):
        yield Site("drop-guard", lambda: place.put(ast.Pass()))
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield Site("drop-filter", partial(node.ifs.remove, condition))
    if isinstance(node, ast.BoolOp):
        yield Site("swap-and-or", lambda: setattr(node, "op", _other_junction(node.op)))
        for operand in node.values:
            yield Site("drop-operand", partial(_drop_operand, place, node, operand))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield Site(
            "swap-comparison",
            lambda: setattr(node, "ops", [COMPARISONS[type(node.ops[0])]()]),
        )
    if isinstance(node, ast.match_case):
        yield Site("drop-case", lambda: setattr(node, "guard", ast.Constant(False)))


def _of_values(place: _Place) -> Iterator[Site]:
    node = place.node
    if isinstance(node, ast.BinOp) and (swapped := ARITHMETIC.get(type(node.op))):
        yield Site("swap-arithmetic", lambda: setattr(node, "op", swapped()))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield Site("flip-constant", lambda: place.put(ast.Constant(not node.value)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield Site("off-by-one", partial(place.put, ast.Constant(node.value + 1)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func
        if name.id in EXTREMES:
            yield Site("swap-min-max", lambda: setattr(name, "id", EXTREMES[name.id]))
            for argument in node.args if len(node.args) > 1 else ():
                yield Site("take-argument", partial(place.put, argument))
        if name.id == "sorted":
            yield Site("drop-order", lambda: place.put(_call("list", node.args[0])))


def _of_statements(place: _Place, root: ast.AST) -> Iterator[Site]:
    node = place.node
    if isinstance(node, ast.Return) and _is_predicate(root) and node.value is not None:
        yield Site("negate-return", lambda: setattr(node, "value", _negated(node.value)))
    if _is_droppable(node):
        yield Site("drop-statement", lambda: place.put(ast.Pass()))
    if isinstance(node, ast.With | ast.AsyncWith):
        yield Site("drop-lock", lambda: place.put(*node.body))
    if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
        yield Site("drop-handler", lambda: setattr(node, "body", [ast.Raise()]))
    after = _next_statement(place)
    if isinstance(node, SIMPLE) and isinstance(after, SIMPLE) and (_waits(node) or _waits(after)):
        # The order around a wait is what races are made of.
        yield Site("swap-statements", lambda: _swap(place))


def _negated(test: ast.expr | None) -> ast.expr:
    assert test is not None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _other_junction(op: ast.boolop) -> ast.boolop:
    return ast.Or() if isinstance(op, ast.And) else ast.And()


def _drop_operand(place: _Place, node: ast.BoolOp, operand: ast.expr) -> None:
    left = [one for one in node.values if one is not operand]
    place.put(left[0]) if len(left) == 1 else setattr(node, "values", left)


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


def _is_predicate(root: ast.AST) -> bool:
    return isinstance(root, Function) and ast.unparse(root.returns or ast.Pass()) == "bool"


def _is_droppable(node: ast.AST) -> bool:
    """Something is done there; without it every name is still bound."""
    if isinstance(node, ast.Assign):
        parts = [
            part
            for target in node.targets
            for part in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        return all(isinstance(part, ast.Attribute | ast.Subscript) for part in parts)
    return isinstance(node, ast.Delete | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    )


def _next_statement(place: _Place) -> ast.AST | None:
    if place.position is None or not isinstance(place.node, ast.stmt):
        return None
    block: list[ast.AST] = getattr(place.parent, place.field)
    return block[place.position + 1] if place.position + 1 < len(block) else None


def _waits(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Await) for one in ast.walk(node))


def _swap(place: _Place) -> None:
    assert place.position is not None
    block, at = getattr(place.parent, place.field), place.position
    block[at], block[at + 1] = block[at + 1], block[at]
