"""The steps down, one folder or file per step, named from_to."""

if __name__ != "stepwell.lowering":  # e.g. `import lowering` from the repository root
    raise ImportError(f"import stepwell.lowering, not {__name__}")
