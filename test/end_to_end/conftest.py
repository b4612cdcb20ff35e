"""Programs compiled by tests go into a cache of their own."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from stepwell.runtime.cache import disk_cache


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Keep the cache of the person who runs the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPWELL_CACHE", str(tmp_path_factory.mktemp("cache")))
        disk_cache.cache_clear()
        yield
    disk_cache.cache_clear()
