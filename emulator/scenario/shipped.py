"""The shipped scenarios by name, and the resolution of `SCENARIO` on a command line.

They are in `scenarios/` beside the packages (a clone or an editable install), or in
`emulator/shipped/` of a built package. A scenario's name is its file's name without `.yaml`.
"""

from __future__ import annotations

from pathlib import Path

from emulator.scenario.errors import UserError, instead_of

_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = (_PACKAGE.parent / "scenarios", _PACKAGE / "shipped")
_ENDINGS = (".yaml", ".yml")


def shipped() -> dict[str, Path]:
    """All shipped scenarios by name."""
    for place in _PLACES:
        scenarios = {path.stem: path for path in sorted(place.glob("*.yaml"))}
        if scenarios:
            return scenarios
    return {}


def find(scenario: str) -> Path:
    """The file of a shipped scenario's name, or of a path. Raises UserError if it is neither."""
    known = shipped()
    if scenario in known:
        return known[scenario]
    path = Path(scenario)
    if path.is_file():
        return path
    if path.is_dir():
        raise UserError(f"{scenario}: is a directory, not a scenario")
    if "/" in scenario or scenario.endswith(_ENDINGS):
        raise UserError(f"{scenario}: there is no such file")
    raise UserError(f"there is no scenario {scenario}; {instead_of(scenario, known)}")
