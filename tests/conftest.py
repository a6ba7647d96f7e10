"""What every test of this project can rely on.

A shell that starts `make test` in the background has SIGINT ignored, and a process that was started
so hands it on to all its children: those that a test interrupts would not notice. Here it is as in
the foreground.
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
