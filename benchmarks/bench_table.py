"""The benchmark table reports what was measured; nothing is timed here."""

import re

import pytest
import table
from pairs import cpu_ns, fact, interleaved, row


def test_ratio_is_the_median_over_pairs_and_is_held_to_its_target():
    ours, floors = [1.0, 2.0, 30.0, 4.0, 5.0], [2.0, 2.0, 20.0, 2.0, 2.0]  # ratios 0.5, 1, 1.5, 2, 2.5
    slower = row("step", "C", ours, floors, target=1.4)
    assert (slower["ratio"], slower["ours"], slower["floor"], slower["pairs"]) == (1.5, 4.0, 2.0, 5)
    assert slower["met"] is False
    assert row("step", "C", ours, floors, target=1.5)["met"] is True
    faster = row("step", "SciPy", floors, ours, target=1.5, faster=True)
    assert faster["ratio"] == pytest.approx(1.5)
    assert faster["met"] is True
    assert row("step", "C", ours, floors)["met"] is None


def test_pairs_alternate_in_order_and_leave_out_what_is_between():
    calls = []
    costs = interleaved(lambda: calls.append("a"), lambda: calls.append("b"), lambda: calls.append("-"))
    assert "".join(calls[:8]) == "-b-a-a-b"
    assert calls.count("a") == calls.count("b") == len(costs[0]) + 2 == len(costs[1]) + 2
    assert len(costs[0]) >= 6
    assert cpu_ns(lambda: None) >= 0


def test_table_has_a_line_for_every_row_and_names_machine_and_command():
    rows = [
        row("step", "C", [110.0] * 6, [100.0] * 6, target=1.05),
        row("step", "SciPy", [100.0] * 6, [1234.5e3] * 6, target=7.0, faster=True),
        row("spin", "sleep", [0.04] * 6, [20.0] * 6, target=0.01),
        fact("rate error", "the grid", 2.5, "ppm", 10.0),
        fact("lost", "those sent", 3.0, "", 0.0),
    ]
    machine = {
        "cpu": {"brand_raw": "A processor", "count": 2},
        "system": "Linux",
        "release": "6",
        "python_version": "3",
    }
    benchmarks = [{"extra_info": {"rows": rows[:1]}}, {"extra_info": {"rows": rows[1:]}}, {"extra_info": {}}]
    made = {"id": "0123456789", "time": "2026-02-03T04:05:06+00:00", "dirty": True}
    results = {
        "machine_info": machine,
        "benchmarks": benchmarks,
        "commit_info": made,
        "datetime": "2026-02-04T01:02:03",
    }
    text = table.table(results)
    said = "commit 0123456 of 2026-02-03, changed since, measured on 2026-02-04"
    assert text.startswith(f"`python benchmarks/table.py`, {said}, on A processor, 2 processors")
    assert text.splitlines()[-5:] == [
        "| step | C | **1.10** | 1.10 … 1.10 | 110 / 100 ns | ≤ 1.05, missed |",
        "| step | SciPy | **12,345** times faster | 12,345 … 12,345 | 100 / 1,234,500 ns | ≥ 7.00, met |",
        "| spin | sleep | **0.002** | 0.002 … 0.002 | 0.04 / 20 ns | ≤ 0.01, met |",
        "| rate error | the grid | **2.50 ppm** | | | ≤ 10 ppm, met |",
        "| lost | those sent | **3.00** | | | ≤ 0.00, missed |",
    ]


def test_table_of_the_readme_is_one_that_the_command_made_and_says_of_which_commit():
    text = table.README.read_text(encoding="utf-8")
    shown = text.partition(table.BEGIN)[2].partition(table.END)[0]
    assert re.search(r"`python benchmarks/table.py`, commit [0-9a-f]{7} of \d{4}-\d\d-\d\d", shown)
    assert table.put("new", text) == text.replace(shown, "\nnew\n")
    assert "**" not in text.replace(shown, "").partition("## Measured")[2]  # no other figures
