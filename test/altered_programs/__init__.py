"""Programs with one thing altered, and what MLIR says of them."""
