"""The steps from one floor to the next, a folder each; `transforms` has the passes of one floor."""

if __name__ != "stepwell.lowering":  # e.g. `import lowering` from the repository root
    raise ImportError(f"import stepwell.lowering, not {__name__}")
