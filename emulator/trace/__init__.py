"""What happened: a closed vocabulary of events, each with the event that caused it. Everything else
is derived."""
