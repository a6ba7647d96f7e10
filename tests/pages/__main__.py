"""`make pages`: runs the commands that docs/misconceptions.md shows, fills in what they print."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.pages.transcripts import filled, output_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "misconceptions.md"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    with TemporaryDirectory(prefix="isr-pages-") as directory:
        PAGE.write_text(filled(text, partial(output_of, directory=Path(directory))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
