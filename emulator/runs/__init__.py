"""One play, judged; run directories, summary, replay, comparison."""
