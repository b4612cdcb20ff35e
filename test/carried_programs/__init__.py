"""Random programs whose loops permute, keep, replace and update the tensors that they carry."""
