"""`python -m tools.scala_orders`: plays random additions and removals on the collections of real
Scala libraries, and writes the orders that they list to tests/unit/zk/scala-orders.jsonl.gz.

Needs Java 11 or later and Maven, which brings the libraries.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "unit" / "zk" / "scala-orders.jsonl.gz"
LIBRARIES = ("2.11.12", "2.12.10", "2.13.2", "2.13.10")
"""Those of the recorded releases of Kafka, and one of 2.12."""
COLLECTIONS = ("immutable.Set", "immutable.Map", "mutable.HashSet", "mutable.HashMap")
CASES = 60
"""Of each collection, with numbers and with text."""
SEED = 29


def cases() -> list[str]:
    """One line each: collection, type of the elements, additions and removals."""
    chance = random.Random(SEED)
    lines = []
    for collection in COLLECTIONS:
        for kind in ("int", "string"):
            for number in range(CASES):
                # Most are as small as an ISR; some fill tables up to where they grow twice.
                size = chance.randint(1, 8) if number % 3 else chance.randint(9, 70)
                pool = [
                    str(chance.randint(-5000, 5000) if number % 2 else value)
                    if kind == "int"
                    else f"{chance.choice(('orders', 'clicks', 'a', ''))}-{value}"
                    for value in range(size)
                ]
                present: dict[str, None] = {}
                steps = []
                for _ in range(2 * size):
                    element = chance.choice(pool)
                    # Tables are only ever filled here: what a removal leaves is for sets.
                    if element not in present:
                        present[element] = None
                        steps.append(f"+{element}")
                    elif collection == "immutable.Set":
                        del present[element]
                        steps.append(f"-{element}")
                lines.append(" ".join((collection, kind, *steps)))
    return lines


def orders(library: Path, lines: list[str]) -> list[str]:
    """What the collections of this library list."""
    command = ["java", "-cp", str(library), str(Path(__file__).with_name("ScalaOrders.java"))]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def main() -> int:
    lines = cases()
    listed: list[list[str]] = []
    with TemporaryDirectory(prefix="isr-scala-") as folder:
        for version in LIBRARIES:
            artifact = f"-Dartifact=org.scala-lang:scala-library:{version}"
            copy = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
            subprocess.run(copy, cwd=folder, check=True)
            library = Path(folder) / f"scala-library-{version}.jar"
            listed.append(orders(library, lines))
    rows = [
        {"case": line, "orders": dict(zip(LIBRARIES, texts, strict=True))}
        for line, *texts in zip(lines, *listed, strict=True)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    TABLE.write_bytes(gzip.compress(text.encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
