"""Methods side by side under one protocol: same panel, start, tasks, seeds and budget of generated tokens."""
