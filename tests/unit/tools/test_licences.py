"""The dependencies of `isr` are compatible with the Apache licence; the tool reports others."""

from __future__ import annotations

import pytest

from tools import licences


def test_everything_that_isr_needs_has_a_licence_that_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert licences.main() == 0
    lines = capsys.readouterr().out.splitlines()
    needed = {line.split()[0] for line in lines if " dev " not in line}
    assert {"kazoo", "kio", "msgspec", "urllib3"} <= needed  # urllib3 by way of docker
    assert "pytest" not in needed


@pytest.mark.parametrize("licence", ["", "GPL-2.0-only", "AGPL-3.0", "Proprietary"])
def test_a_licence_that_does_not_fit_is_refused(licence: str) -> None:
    assert not licences.is_permitted(licence)


@pytest.mark.parametrize("licence", ["Apache-2.0", "MIT License", "BSD-3-Clause", "LGPLv2+"])
def test_a_licence_that_fits_is_not(licence: str) -> None:
    assert licences.is_permitted(licence)
