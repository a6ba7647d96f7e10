"""Lanes, the story of a change, pages; live/ is isr top and isr watch."""
