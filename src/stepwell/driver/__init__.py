"""How a module is taken down: the pipeline, what is in reach for it, and who runs it."""
