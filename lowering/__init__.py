"""The steps from one floor to the next, a folder each. What stays on a floor is in `transforms`."""

if __name__ != "stepwell.lowering":  # e.g. `import lowering` from the repository root
    raise ImportError(f"import stepwell.lowering, not {__name__}")
