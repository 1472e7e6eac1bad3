"""A plugin: tests that compile something come last, because most mutants are found without."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: "probe" in getattr(item, "fixturenames", ()))
