"""Layers, losses and initialisers of neural networks, by family; `stepwell.nn` lists them."""
