"""Lower a module: the pipeline, the registry of passes and dialects, and the driver."""
