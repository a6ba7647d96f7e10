"""The licences of all packages in requirements.lock, as their metadata has them.

    python -m tools.licences

Exit code 1: one that `isr` needs to run has no licence that the Apache licence of this project goes
with. Tools of developers only (marked dev) may have any. What is not installed on this platform is
named.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = "kafka-isr-emulator"
LOCK = Path(__file__).parents[1] / "requirements.lock"
_PINNED = re.compile(r"^([a-zA-Z0-9._-]+)==", re.MULTILINE)
_CLASSIFIER = "License :: OSI Approved :: "
_PERMITTED = re.compile(
    r"apache|\bmit\b|bsd|isc|psf|python software|mpl|mozilla public|unlicense|zlib|0bsd"
    r"|lgpl|lesser general|public domain",
    re.IGNORECASE,
)
_SHOWN = 60


def packages() -> list[str]:
    return sorted(set(_PINNED.findall(LOCK.read_text(encoding="utf-8"))))


def needed_by(name: str, seen: set[str]) -> set[str]:
    """What it needs to run, and what that needs; `seen` is added to."""
    try:
        required = map(Requirement, distribution(name).requires or ())
    except PackageNotFoundError:
        return seen
    for one in required:
        if one.name.lower() not in seen and (not one.marker or one.marker.evaluate({"extra": ""})):
            seen.add(one.name.lower())
            needed_by(one.name, seen)
    return seen


def licence_of(package: Distribution) -> str:
    """As the package declares it: an SPDX expression, classifiers, or a text; empty without any."""
    return next(filter(None, _declared(package)), "")


def _declared(package: Distribution) -> Iterator[str]:
    metadata = package.metadata
    yield metadata.get("License-Expression", "")
    classifiers = metadata.get_all("Classifier") or []
    yield ", ".join(
        one.removeprefix(_CLASSIFIER) for one in classifiers if one.startswith(_CLASSIFIER)
    )
    # Some have the whole text here.
    yield metadata.get("License", "").strip().partition("\n")[0]
    files = (file for file in package.files or () if "LICEN" in file.name.upper())
    yield next((file.read_text().strip().partition("\n")[0] for file in files), "")


def is_permitted(licence: str) -> bool:
    return bool(_PERMITTED.search(licence))


def main() -> int:
    missing, refused = [], []
    needed = needed_by(PROJECT, set())
    for name in packages():
        try:
            package = distribution(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        licence = licence_of(package)
        use = "   " if name in needed else "dev"
        print(f"{name:<28}{package.version:<18}{use}  {licence[:_SHOWN] or '?'}")
        if name in needed and not is_permitted(licence):
            refused.append(name)
    if missing:
        print(f"not installed here: {', '.join(missing)}")
    if refused:
        print(f"no licence that this project may depend on: {', '.join(refused)}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
