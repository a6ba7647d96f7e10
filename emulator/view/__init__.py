"""Lanes, explanations of ISR changes, and pages; `live/` is isr top and isr watch."""
