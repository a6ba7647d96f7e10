"""The command `isr`: one file per command, each a thin call into the house."""
