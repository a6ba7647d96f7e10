"""Finds iterations over sets: their order depends on hashes."""

import ast


class SetIterations(ast.NodeVisitor):
    """Over a display, a call of set(), set arithmetic, keys() put together, or a name or attribute
    that the module annotates or assigns as a set. `found` holds what is iterated over."""

    ANY_ORDER = ("sorted", "min", "max", "sum", "any", "all", "len", "set", "frozenset", "dict")
    TYPES = ("set", "frozenset", "Set", "AbstractSet", "MutableSet")

    def __init__(self) -> None:
        self.scopes: list[dict[str, bool]] = [{}]
        self.attributes: set[str] = set()
        self.found: list[ast.expr] = []

    def is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub()):
                return any(self.is_set(side) or is_keys(side) for side in (node.left, node.right))
            case ast.Name():
                return next((s[node.id] for s in reversed(self.scopes) if node.id in s), False)
            case ast.Attribute():
                return node.attr in self.attributes
        return False

    def is_set_type(self, annotation: ast.expr | None) -> bool:
        if isinstance(annotation, ast.Subscript):
            annotation = annotation.value
        return annotation is not None and ast.unparse(annotation).split(".")[-1] in self.TYPES

    def learn(self, target: ast.expr, as_set: bool) -> None:
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = as_set
            if len(self.scopes) == 1 and as_set:
                self.attributes.add(target.id)
        elif isinstance(target, ast.Attribute) and as_set:
            self.attributes.add(target.attr)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.learn(target, self.is_set(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        self.learn(node.target, self.is_set_type(node.annotation))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for member in node.body:
            match member:
                case ast.AnnAssign(target=ast.Name(id=name)) if self.is_set_type(member.annotation):
                    self.attributes.add(name)
        self.in_scope(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.in_scope(node, {a.arg: self.is_set_type(a.annotation) for a in arguments})

    visit_AsyncFunctionDef = visit_FunctionDef

    def in_scope(self, node: ast.AST, names: dict[str, bool] | None = None) -> None:
        self.scopes.append(names or {})
        self.generic_visit(node)
        self.scopes.pop()

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.look_at(node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        for generator in node.generators:
            self.look_at(generator.iter)
        self.generic_visit(node)

    visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called in ("list", "tuple", "enumerate", "iter", "zip"):
            for argument in node.args:
                self.look_at(argument)
        match node.args:
            case [ast.GeneratorExp() | ast.ListComp() as items, *_] if called in self.ANY_ORDER:
                self.generic_visit(items)
            case _:
                self.generic_visit(node)

    def look_at(self, node: ast.expr) -> None:
        if self.is_set(node):
            self.found.append(node)


def is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "keys"
