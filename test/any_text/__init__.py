"""Any text, whoever wrote it and however damaged, is a result or one clear message."""
