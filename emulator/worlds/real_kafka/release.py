"""The source of real Kafka: an unpacked release, or jars that Maven downloads into a cache folder.

Owns the names of Kafka's artifacts, and how the version of a folder of jars is determined. Does not
know what is run with them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec

from emulator.scenario.errors import UserError

OLDEST, NEWEST = (0, 8, 2), (3, 9)
"""3.9 is the last line with ZooKeeper."""
_VERSION = re.compile(r"\d+(\.\d+){1,3}")
_JAR = re.compile(r"kafka_2\.\d+-(\d+(?:\.\d+)+)\.jar")
_SCALA_2_13_FROM = (2, 4)
_NO_SUCH = re.compile(
    r"Could not find artifact org\.apache\.kafka:kafka_|org\.apache\.kafka:kafka_\S+ was not found"
)
_COLOUR = re.compile(r"\x1b\[\d*m")
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>isr</groupId><artifactId>real-kafka</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_{scala}</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>{binding}</artifactId><version>{slf4j}</version>
    </dependency>
{more}  </dependencies>
</project>
"""
_DEPENDENCY = """\
    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    </dependency>
"""
_BESIDES = (
    ((0, 0), (1, 0), ("javax.xml.bind", "jaxb-api", "2.3.1")),
    ((2, 0), (2, 4), ("org.apache.zookeeper", "zookeeper", "3.4.10")),
)
"""From one version up to another: what Java brought itself when 0.10 was written; and, instead of
3.4.13 and 3.4.14, a ZooKeeper client that finds its server on Java 14 and later
(ZOOKEEPER-3779)."""


class Release(msgspec.Struct, frozen=True):
    """A version of Kafka, and the folder of its jars."""

    version: str
    libs: Path

    @property
    def numbers(self) -> tuple[int, ...]:
        return numbers_of(self.version)

    @property
    def line(self) -> str:
        """The version as profiles name it: 2.6, or 0.8.2."""
        return ".".join(map(str, self.numbers[: 3 if self.numbers[0] == 0 else 2]))

    @property
    def class_path(self) -> str:
        return f"{self.libs}/*"


def numbers_of(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def find_release(version: str | None, home: Path | None, cache: Path | None = None) -> Release:
    """Find the requested release, and download it if necessary. Raises UserError."""
    if home is not None:
        jars = (_JAR.fullmatch(jar.name) for jar in sorted(home.glob("libs/kafka_2.*.jar")))
        unpacked = next((jar[1] for jar in jars if jar), None)
        if unpacked is None:
            raise UserError(
                f"--kafka-home {home}: no unpacked release: it has no libs/kafka_2.*.jar"
            )
        if version not in (None, unpacked):
            raise UserError(f"--kafka-home {home}: it is Kafka {unpacked}, not {version}")
        check_version(unpacked)
        return Release(unpacked, home.resolve() / "libs")
    if version is None:
        raise UserError("give --kafka VERSION or --kafka-home DIR")
    check_version(version)
    libs = (cache or cache_folder()) / f"kafka-{version}" / "libs"
    if not (libs / ".whole").exists():
        _fetch(version, libs)
    return Release(version, libs)


def check_version(version: str, option: str = "--kafka") -> None:
    """Raises UserError, which starts with `option`, if it is not a version with ZooKeeper and an
    ISR."""
    if not _VERSION.fullmatch(version):
        raise UserError(f"{option} {version}: expected a version such as 2.6.3")
    if not numbers_of(version)[:3] >= OLDEST or numbers_of(version)[:2] > NEWEST:
        raise UserError(f"{option} {version}: 0.8.2 to 3.9 can be run (4.0 has no ZooKeeper)")


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/isr`, as usual."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isr"


def _fetch(version: str, libs: Path) -> None:
    """All or nothing: the jars are moved into place after Maven has downloaded the last one."""
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError(
            f"no Maven (mvn) to fetch Kafka {version} with: install it, or give an unpacked release"
            " with --kafka-home DIR"
        )
    # In the cache's own folder, so that the final rename is one step on one file system.
    work = libs.with_name(f".fetch-{os.getpid()}")
    try:
        work.mkdir(parents=True, exist_ok=True)
        (work / "pom.xml").write_text(_pom(version), encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command = [maven, "-q", "-B", *goal, f"-DoutputDirectory={work / 'libs'}"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            output = done.stdout + done.stderr
            if _NO_SUCH.search(output):
                raise UserError(f"--kafka {version}: there is no such version of Kafka")
            lines = _COLOUR.sub("", output).strip().splitlines() or ["it says nothing"]
            first = next((line for line in lines if line.startswith("[ERROR]")), lines[0])
            why = first.removeprefix("[ERROR]").strip()[:300]
            raise UserError(f"Maven cannot fetch Kafka {version}: {why}")
        (work / "libs" / ".whole").touch()
        shutil.rmtree(libs, ignore_errors=True)
        (work / "libs").rename(libs)
    except OSError as error:
        raise UserError(f"{error.filename or libs}: {error.strerror}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):
            libs.parent.rmdir()  # there was nothing to put into it


def _pom(version: str) -> str:
    """slf4j's binding to log4j 1.2, which Kafka itself brings up to 3.1; then reload4j's."""
    scala = "2.13" if numbers_of(version) >= _SCALA_2_13_FROM else "2.11"
    newer = numbers_of(version) >= (3, 2)
    binding, slf4j = ("slf4j-reload4j", "1.7.36") if newer else ("slf4j-log4j12", "1.7.30")
    more = "".join(
        _DEPENDENCY.format(group=group, artifact=artifact, version=its)
        for first, end, (group, artifact, its) in _BESIDES
        if first <= numbers_of(version) < end
    )
    return _POM.format(version=version, scala=scala, binding=binding, slf4j=slf4j, more=more)
