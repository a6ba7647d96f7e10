"""A YAML file whose values know their line and key, for error messages.

Owns reading YAML: syntax, duplicate keys, types of single values. Values are read from their source
text (where text is expected, `acks: 1` is `1`; Kafka receives `true`). Knows nothing about
scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

import yaml

from emulator.scenario.errors import ScenarioError, UserError, instead_of
from emulator.scenario.units import BadDuration, duration_us

DEPTH_MAX = 20
DIGITS_MAX = 300
_ENDLESS_NUMBER = re.compile(rf"\d{{{DIGITS_MAX + 1}}}")
# libyaml's is eight times as fast; a build of PyYAML may be without it.
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"
_KINDS = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a value"}


class Item:
    """One value in the file: its node and its key (`faults[0].pause.broker`)."""

    __slots__ = ("file", "key", "line", "node")

    def __init__(self, file: str, node: yaml.Node, key: str = "", line: int = 0) -> None:
        self.file, self.node, self.key = file, node, key
        self.line: int = line or node.start_mark.line + 1

    def fail(self, problem: str) -> NoReturn:
        """Raises ScenarioError for this value."""
        raise ScenarioError(self.file, self.line, self.key, problem)

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_null(self) -> bool:
        return self.is_scalar and str(self.node.tag) == _NULL

    def mapping(self, allowed: Collection[str] | None = None) -> dict[str, Item]:
        """The mapping's values by key. Keys must be unique and, if `allowed` is given, among
        those."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"expected a mapping, not {self._kind()}")
        items: dict[str, Item] = {}
        for key_node, value_node in self.node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                Item(self.file, key_node, self.key).fail("a key is a plain word")
            key = str(key_node.value)
            child = Item(self.file, value_node, f"{self.key}.{key}" if self.key else key)
            at_key = Item(self.file, key_node, child.key)
            if key in items:
                at_key.fail(f"is there twice, first on line {items[key].line}")
            if allowed is not None and key not in allowed:
                at_key.fail(f"there is no such key; {instead_of(key, allowed)}")
            items[key] = child
        return items

    def items(self) -> list[Item]:
        """The values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"expected a list, not {self._kind()}")
        nodes = self.node.value
        return [Item(self.file, node, f"{self.key}[{i}]") for i, node in enumerate(nodes)]

    def text(self) -> str:
        """A single value as text."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            self.fail(f"expected a single value, not {self._kind()}")
        text = str(self.node.value)
        # Python refuses to read a number of more than 4,300 digits, in whatever has one.
        if _ENDLESS_NUMBER.search(text):
            self.fail(f"a number of more than {DIGITS_MAX} digits")
        return text

    def whole(self, least: int | None = 0) -> int:
        """A whole number of at least `least` (None: of any sign)."""
        text = self.text().replace("_", "")
        if not re.fullmatch(r"-?\d{1,18}", text):
            self.fail(f"expected a whole number, not {self.text()!r}")
        if least is not None and int(text) < least:
            self.fail(f"at least {least}, not {text}")
        return int(text)

    def number(self) -> float:
        """A number that is not negative."""
        text = self.text()
        if not re.fullmatch(r"\d{1,15}(\.\d{1,9})?", text):
            self.fail(f"expected a number, not {text!r}")
        return float(text)

    def flag(self) -> bool:
        """`true` or `false`."""
        text = self.text().lower()
        if text not in ("true", "false"):
            self.fail(f"expected true or false, not {self.text()!r}")
        return text == "true"

    def duration(self) -> int:
        """A time in microseconds."""
        try:
            return duration_us(self.text())
        except BadDuration as error:
            self.fail(str(error))

    def _kind(self) -> str:
        if self.is_null:
            return "nothing"
        if isinstance(self.node, yaml.ScalarNode):
            return repr(str(self.node.value))
        return _KINDS[type(self.node)]


def read_document(file: str, text: str) -> Item:
    """Parse YAML. Raises ScenarioError with the line of the mistake."""
    try:
        check_structure(file, text)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        problem = "invalid YAML: " + problem.replace("\n", " ")
        raise ScenarioError(file, mark.line + 1 if mark else 1, "", problem) from None
    except yaml.YAMLError as error:
        raise ScenarioError(file, 1, "", "invalid YAML: " + str(error).splitlines()[0]) from None
    if node is None:
        raise ScenarioError(file, 1, "", "the file is empty")
    return Item(file, node)


def read_text(path: Path, file: str) -> str:
    """The file's text. Raises UserError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: no UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def check_structure(file: str, text: str) -> None:
    """Refuses, before anything is constructed: excessive nesting; aliases, which let a few lines
    expand beyond memory; and tags, which construct objects."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            raise ScenarioError(file, line, "", f"*{event.anchor}: aliases are not read here")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag:
            raise ScenarioError(file, line, "", f"{event.tag}: tags are not read here")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise ScenarioError(file, line, "", "nested too deeply")
