"""Lines of styled characters, on which the lane table is drawn, one row at a time.

Owns what covers what (words cover lines, never the other way round), but not their meaning.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.text import Text


class Canvas:
    """`height` lines of `width` blanks; later characters cover earlier ones. Characters outside are
    dropped.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._chars = [[" "] * width for _ in range(height)]
        self._styles = [[""] * width for _ in range(height)]
        self._is_text = [[False] * width for _ in range(height)]

    def put(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write `text` at column `x` of line `y`."""
        for place, char in enumerate(text, start=x):
            if 0 <= place < self.width:
                self._chars[y][place] = char
                self._styles[y][place] = style
                self._is_text[y][place] = True

    def line(self, left: int, right: int, y: int, style: str = "") -> None:
        """Draw a horizontal line in the free columns of [left, right)."""
        for x in range(max(left, 0), min(right, self.width)):
            if not self._is_text[y][x]:
                self._chars[y][x], self._styles[y][x] = "─", style

    def texts(self) -> Iterator[Text]:
        """The lines as rich texts, with one span per style."""
        for chars, styles in zip(self._chars, self._styles, strict=True):
            text = Text(no_wrap=True, overflow="crop", end="\n")
            end = len("".join(chars).rstrip())
            start = 0
            for x in range(1, end + 1):
                if x == end or styles[x] != styles[start]:
                    text.append("".join(chars[start:x]), styles[start] or None)
                    start = x
            yield text


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` characters; none for an empty text."""
    return textwrap.wrap(text, max(width, 4), break_on_hyphens=False) if text else []
