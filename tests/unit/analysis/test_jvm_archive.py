"""The archive of Spark's classes: written once, read then, never in the way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from emulator.analysis import jvm_archive

JAVA = Path("/usr/bin/java")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def leave(header: int) -> Path:
    archive = jvm_archive.place(JAVA)
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(header.to_bytes(4, sys.byteorder) + b"classes")
    return archive


def test_the_first_that_may_write_it_does(cache: Path) -> None:
    assert jvm_archive.options(JAVA, write=False) == ""
    found = jvm_archive.options(JAVA, write=True)
    assert found.startswith(f"-XX:ArchiveClassesAtExit={cache}/isr/spark-")


def test_who_comes_later_reads_it() -> None:
    archive = leave(0xF00BABA8)
    for write in (True, False):
        said = jvm_archive.options(JAVA, write=write)
        assert said.startswith(f"-XX:SharedArchiveFile={archive} ")


def test_one_that_was_not_written_to_its_end_is_written_again() -> None:
    leave(0)
    assert jvm_archive.options(JAVA, write=False) == ""
    assert "ArchiveClassesAtExit" in jvm_archive.options(JAVA, write=True)


def test_another_java_has_another_archive(tmp_path: Path) -> None:
    other = tmp_path / "jdk" / "bin" / "java"
    assert jvm_archive.place(other) != jvm_archive.place(JAVA)
    (tmp_path / "jdk").mkdir()
    (tmp_path / "jdk" / "release").write_text("21")
    assert jvm_archive.place(other).name.startswith("spark-")


@pytest.mark.parametrize("name", ["a folder", "no-folder"])
def test_without_a_place_there_is_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-folder").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    assert jvm_archive.options(JAVA, write=True) == ""
