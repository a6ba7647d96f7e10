"""Which of the recordings are of clusters that stayed whole: there every request changes something.

Where a broker or its session fails, requests repeat what is known already and decisions come to
nothing. The judge passes over such repeats (points 4 and 5 of compare-recordings), so that one of
them may be lost without notice.
"""

from pathlib import Path

from emulator.conformance.recording import read_recording

FOLDER = Path(__file__).parents[2] / "recordings" / "kafka-2.6.3"
CHANGES_OF_A_WHOLE_CLUSTER = 2
"""The controller saw the second and the third broker start."""
ADMIN_STIMULI = {"reassign", "delete_topic", "add_partitions"}


def stays_whole(folder: Path) -> bool:
    events = read_recording(folder).events
    changes = sum(event["kind"] == "broker_change" for event in events)
    administered = any(event.get("do") in ADMIN_STIMULI for event in events)
    return changes <= CHANGES_OF_A_WHOLE_CLUSTER and not administered


FAILURE_FREE = sorted(folder.name for folder in FOLDER.iterdir() if stays_whole(folder))
