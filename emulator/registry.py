"""What a package registers is what its modules define; nothing is listed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def modules_of(package: str) -> list[ModuleType]:
    """The package's own modules, imported, in the order of their names; folders are left out."""
    path = importlib.import_module(package).__path__
    names = sorted(m.name for m in pkgutil.iter_modules(path) if not m.ispkg)
    return [importlib.import_module(f"{package}.{name}") for name in names]


def classes_of(package: str, base: type[T]) -> list[type[T]]:
    """The classes below `base` that nothing inherits from, once `package` is imported."""
    modules_of(package)
    return list(_leaves(base))


def _leaves(kind: type[T]) -> Iterator[type[T]]:
    for below in kind.__subclasses__():
        if below.__subclasses__():
            yield from _leaves(below)
        else:
            yield below
