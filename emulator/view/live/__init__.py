"""A running cluster on the screen: `isr top` and `isr watch`."""
