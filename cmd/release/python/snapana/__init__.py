"""What filled the GPU: PyTorch memory snapshots, turned into a verdict.

    report = snapana.report("snapshot.pickle")     # or an s3:// name, or torch.cuda.memory._snapshot()
    report.verdict                                 # "ghost", "fragmentation", "capacity", "healthy", ...
    report.findings[0].title                       # the sentence; .bytes, .confidence, .next, .evidence
    report                                         # in a notebook: the report's page

    with snapana.record("run") as run:             # writes run.pickle and run.snapana
        train()
    run.report

    snapana.on_oom("dumps")                        # dumps when the GPU runs out of memory

All of it is done by the program `snapana`, which this package brings along or finds; it needs no other package, and no
GPU to read a snapshot. Sizes are integers in bytes.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._record import Recording, on_oom, record
    from ._report import Figures, Finding, Report, Verdict, report
    from ._results import Cause, Diff, Fit, Prediction, Setting, WhatIf, diff, fit, whatif
    from ._run import Error, binary

__all__ = [
    "Cause", "Diff", "Error", "Figures", "Finding", "Fit", "Prediction", "Recording", "Report", "Setting", "Verdict",
    "WhatIf", "binary", "diff", "fit", "on_oom", "record", "report", "whatif",
]

_HOMES = {
    "_record": ("Recording", "on_oom", "record"),
    "_report": ("Figures", "Finding", "Report", "Verdict", "report"),
    "_results": ("Cause", "Diff", "Fit", "Prediction", "Setting", "WhatIf", "diff", "fit", "whatif"),
    "_run": ("Error", "binary"),
}


def __getattr__(name: str) -> "Any":  # so that `import snapana` costs nothing
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            module = import_module("." + home, __name__)
            for found in names:
                globals()[found] = getattr(module, found)
            return globals()[name]
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("snapana")
        except metadata.PackageNotFoundError:
            return "unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__, "__version__"})
