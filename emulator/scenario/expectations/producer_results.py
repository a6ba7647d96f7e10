"""`records of orders refused: at least 10 (NOT_ENOUGH_REPLICAS)`, `records of orders acknowledged:
600`.

Held when the number of records with that result is in the range. The error's name is the client
library's and may be left out. Unknown when no producer of the topic has any result.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.expectations.forms import Amount


class ProducerResults(Check):
    forms = (
        "records of {topic} acknowledged: {amount}",
        "records of {topic} refused: {amount} ({error})",
        "records of {topic} refused: {refused:amount}",
    )
    topic: str
    amount: Amount = (0, None)
    refused: Amount | None = None
    error: str | None = None

    def at_end(self) -> Finding:
        records = self.state.records
        acknowledged = records.acknowledged[self.topic]
        refused = records.refusals(self.topic, self.error)
        if not acknowledged and not records.refusals(self.topic):
            return Finding(None, "no producer had a result")
        about_refusals = self.refused is not None or self.error is not None
        count = refused if about_refusals else acknowledged
        low, high = self.refused or self.amount
        held = low <= count and (high is None or count <= high)
        return Finding(held, f"{acknowledged} acknowledged, {refused} refused")
