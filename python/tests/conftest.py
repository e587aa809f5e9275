import os

import numpy as np
import pytest
import trifactor


def pytest_collection_modifyitems(items):
    """Tests marked cuda are skipped without a device, unless TRIFACTOR_REQUIRE_CUDA=1 makes that an error."""
    why = trifactor.info()["why_no_cuda"]
    if not why:
        return
    if os.environ.get("TRIFACTOR_REQUIRE_CUDA") == "1":
        raise pytest.UsageError(f"TRIFACTOR_REQUIRE_CUDA=1, but {why}")
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def rng():
    return np.random.default_rng(7)
