"""Settings for all tests of this project.

A shell that starts `make test` in the background ignores SIGINT, nohup ignores SIGHUP, and child
processes inherit this: those that a test ends by such a signal would not notice. Here both have
their defaults, as in the foreground.
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
