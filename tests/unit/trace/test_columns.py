"""The schema of a data set, complete and reduced to the columns that a reader needs."""

from __future__ import annotations

import pytest

from emulator.trace.columns import schema, schema_ddl


def test_some_columns_are_in_the_order_of_the_whole() -> None:
    assert schema_ddl({"t", "kind"}) == "`kind` string, `t` bigint"
    assert schema_ddl().count("`") == 2 * len(schema())


def test_of_records_and_lists_of_them_some_parts_are_enough() -> None:
    parts = {"states": ("zk_version", "topic"), "leader_and_isr_state": ("replicas",)}
    assert schema_ddl({"kind", *parts}, parts) == (
        "`kind` string, `leader_and_isr_state` struct<replicas:array<bigint>>, "
        "`states` array<struct<topic:string,zk_version:bigint>>"
    )


def test_a_part_that_a_record_does_not_have_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="mood"):
        schema_ddl({"states"}, {"states": ("mood",)})
