"""What every test of this project can rely on.

A shell that starts `make test` in the background has SIGINT ignored, nohup has SIGHUP, and who was
started so hands it on to all its children: those that a test ends by it would not notice. Here both
are as in the foreground.
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
