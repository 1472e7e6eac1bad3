"""Execute the notebooks, or check that what is committed is in step with its source.

The source of a notebook is its .py file (jupytext, percent format); the .ipynb beside it is the same cells, executed.

    python notebooks/execute.py            # execute all, write the .ipynb files
    python notebooks/execute.py --check    # same cells, every cell executed, small, no time stamps; changes nothing
"""

import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat

HERE = Path(__file__).parent
LIMIT_BYTES = 700_000


def source_of(path: Path) -> nbformat.NotebookNode:
    """Return the notebook that a .py file describes, with cell names that do not change from run to run."""
    notebook = jupytext.read(path)
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def execute(path: Path) -> None:
    """Write the executed notebook beside its source."""
    notebook = source_of(path)
    here = {"metadata": {"path": HERE}}
    nbclient.NotebookClient(notebook, timeout=120, record_timing=False, resources=here).execute()
    notebook.metadata = {name: notebook.metadata[name] for name in ("jupytext", "kernelspec")}
    nbformat.write(notebook, path.with_suffix(".ipynb"))


def complaints(path: Path) -> list[str]:
    """Return what is wrong with a committed notebook."""
    committed = path.with_suffix(".ipynb")
    if not committed.exists():
        return [f"{committed.name} is missing"]
    found = []
    notebook = nbformat.read(committed, as_version=4)
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    if cells != [(cell.cell_type, cell.source) for cell in source_of(path).cells]:
        found.append(f"{committed.name} and {path.name} differ: run python notebooks/execute.py")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        found.append(f"{committed.name} was not executed from top to bottom")
    if any(output.output_type == "error" for cell in code for output in cell.outputs):
        found.append(f"{committed.name} ends in an error")
    if any("execution" in cell.metadata for cell in code):
        found.append(f"{committed.name} carries time stamps")
    if committed.stat().st_size > LIMIT_BYTES:
        found.append(f"{committed.name} has {committed.stat().st_size} bytes, allowed are {LIMIT_BYTES}")
    return found


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    sources = sorted(HERE.glob("[0-9]*.py"))
    if arguments not in ([], ["--check"]) or not sources:
        print(__doc__, file=sys.stderr)
        return 2
    if not arguments:
        for path in sources:
            execute(path)
    found = [complaint for path in sources for complaint in complaints(path)]
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
