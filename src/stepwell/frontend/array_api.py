"""The inspection API that the array API standard, version 2024.12, requires of a namespace."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
}


def namespace(api_version: str | None = None) -> Any:
    """Return `stepwell.numpy`, for one of the versions that it follows.

    raises ValueError : the version is unknown
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"stepwell.numpy follows the array API of {', '.join(VERSIONS)}, not of {api_version}"
        )
    return import_module("stepwell.numpy")


class NamespaceInfo:
    """The result of `__array_namespace_info__` of `stepwell.numpy`."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities; masks and dynamic sizes are not supported."""
        return {
            "boolean indexing": False,
            "data-dependent shapes": False,
            "max dimensions": None,
        }

    def default_device(self) -> str:
        """Return the default device."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return the devices of arrays."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        """Return the default dtypes; complex dtypes are not supported."""
        _check(device)
        return {
            "real floating": np.dtype(np.float64),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """Return the supported dtypes of the standard, of the given kinds."""
        _check(device)
        kinds = (kind,) if isinstance(kind, str) else tuple(_KINDS) if kind is None else kind
        groups = {
            "integral": ("signed integer", "unsigned integer"),
            "complex floating": (),
            "numeric": ("signed integer", "unsigned integer", "real floating"),
        }
        found: dict[str, Any] = {}
        for name in kinds:
            if name not in _KINDS and name not in groups:
                raise ValueError(f"unsupported kind: {name!r}")
            for own in groups.get(name, (name,)):
                found |= {dtype: np.dtype(dtype) for dtype in _KINDS[own]}
        return found


def _check(device: str | None) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"Device not understood. Only 'cpu' is allowed, but received: {device}")
