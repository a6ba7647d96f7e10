"""A broker's page: metrics under Kafka's names, its memory for `isr top`, whether it has started.

The broker is one process of `isr broker` beside a real server.
"""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import tenacity

from tests.command import Isr
from tests.live.zk.owner import PATIENCE_S
from zk.real.server import EmbeddedServer, reserve

pytestmark = pytest.mark.live
MAIN = [sys.executable, "-c", "from emulator.cli import main; main()"]


def free_port() -> int:
    with reserve(0) as reservation:
        return int(reservation.getsockname()[1])


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)


class Served:
    """One broker and its page."""

    def __init__(self, server: EmbeddedServer, said: Path) -> None:
        self.zookeeper, self.port, self.page = str(server.address), free_port(), free_port()
        words = ["broker", "--id", "7", "--zookeeper", self.zookeeper]
        words += ["--listen", f"127.0.0.1:{self.port}", "--page", f"127.0.0.1:{self.page}"]
        self.said = said
        with said.open("w") as out:
            self.process = subprocess.Popen([*MAIN, *words], stderr=out)

    def get(self, path: str, accept: str = "") -> tuple[str, str]:
        """Content type and text. OSError while the broker is not started."""
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.page}{path}", headers={"Accept": accept}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    @tenacity.retry(
        stop=tenacity.stop_after_delay(2 * PATIENCE_S),
        wait=tenacity.wait_fixed(0.1),
        retry=tenacity.retry_if_exception_type(OSError),
        reraise=True,
    )
    def wait_until_started(self) -> None:
        assert self.get("/healthy")[1] == "started\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with EmbeddedServer(tmp_path_factory.mktemp("zookeeper")) as server:
        made = Served(server, tmp_path_factory.mktemp("said") / "broker-7")
        try:
            made.wait_until_started()
            yield made
            made.process.send_signal(signal.SIGTERM)
            assert made.process.wait(PATIENCE_S) == 0
        finally:
            made.process.kill()
            made.process.wait()


def test_metrics_are_text_or_openmetrics_as_the_reader_asks(served: Served) -> None:
    kind, text = served.get("/metrics")
    assert kind.startswith("text/plain")
    assert "\nkafka_server_replicamanager_isrshrinks_total 0.0\n" in text
    kind, text = served.get("/metrics", "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


def test_status_is_what_the_broker_has_in_memory_and_top_shows_it(
    served: Served, isr: Isr, tmp_path: Path
) -> None:
    where = f"127.0.0.1:{served.port}"
    arguments = ("--bootstrap", where, "--partitions", 2, "--replication-factor", 1)
    assert isr("topics", "create", "orders", *arguments)[0] == 0
    status = json.loads(served.get("/status")[1])
    assert (status["broker"], status["started"]) == (7, True)
    assert status["controller_epoch"] == 1
    for view in ("leads", "controls", "metadata"):
        assert sorted(status[view]) == ["orders-0", "orders-1"]
        assert status[view]["orders-0"]["isr"] == [7]
        assert status[view]["orders-0"]["zk_version"] == 0
    look = json.loads(isr("top", "--zookeeper", served.zookeeper, "--json")[1])
    views = look["views"]["orders-1"]
    assert [view["view"] for view in views] == ["controller 7", "leader 7", "metadata 7"]
    assert all(view["known"] and not view["differs"] for view in views)
    metrics = served.get("/metrics")[1]
    for name in ("leadercount 2.0", "partitioncount 2.0", "underreplicatedpartitions 0.0"):
        assert f"kafka_server_replicamanager_{name}\n" in metrics
    assert "kafka_controller_kafkacontroller_activecontrollercount 1.0\n" in metrics


def test_who_does_not_wait_for_the_answer_is_nobodys_news(served: Served) -> None:
    """The broker is paused meanwhile, as in a long garbage collection."""
    served.process.send_signal(signal.SIGSTOP)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", served.page)) as reader:
            reader.sendall(b"GET /status HTTP/1.1\r\n\r\n")
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    served.process.send_signal(signal.SIGCONT)
    assert served.get("/healthy")[1] == "started\n"
    assert "Traceback" not in served.said.read_text()


def test_what_is_not_there_is_told(served: Served) -> None:
    with pytest.raises(urllib.error.HTTPError) as told:
        served.get("/nothing")
    with told.value as answer:
        assert answer.code == 404


def test_a_page_that_cannot_be_had_is_one_line(served: Served) -> None:
    words = ["broker", "--id", "1", "--zookeeper", served.zookeeper]
    words += ["--listen", f"127.0.0.1:{free_port()}", "--page", f"127.0.0.1:{served.page}"]
    done = subprocess.run([*MAIN, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 64
    assert done.stderr == f"isr: --page 127.0.0.1:{served.page}: Address already in use\n"
