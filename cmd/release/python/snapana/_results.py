"""`snapana diff`, `fit` and `whatif`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from ._frame import fits, frame
from ._report import Report, _write
from ._run import Json, Option, Path, figure, flags, name_of, parse, run, texts
from ._source import Snapshot, Source

Side = Union[Snapshot, Report]
Number = Union[int, float]


def _source(side: Any) -> Source:
    return side._source if isinstance(side, Report) else Source(side)


class _Result:
    """A result with a page: `-o NAME.html`."""

    def __init__(self, command: str, line: Sequence[str], files: Sequence[str], sources: Sequence[Source],
                 raw: Json) -> None:
        self._command, self._tail, self._sources = command, (*line, *files), tuple(sources)
        self.json = raw
        """As report/json/SCHEMA.md describes it. Not to be changed."""

    @property
    def headline(self) -> str:
        raise NotImplementedError

    @property
    def markdown(self) -> str:
        """For issues and chats."""
        return run(self._command, "--format=md", *self._tail)

    @property
    def html(self) -> str:
        """A page that needs no network."""
        with tempfile.TemporaryDirectory(prefix="snapana-") as folder:
            name = os.path.join(folder, "page.html")
            run(self._command, f"--output={name}", *self._tail)
            with open(name, encoding="utf-8", newline="") as file:
                return file.read()

    def save(self, path: Path) -> str:
        """Writes Markdown to a name that ends in .md, else what `-o` writes there. Gives the name."""
        name = name_of(path)
        if name.lower().endswith(".md"):
            _write(name, self.markdown)
        else:
            run(self._command, f"--output={name}", *self._tail)
        return name

    def __repr__(self) -> str:
        return f"<snapana.{type(self).__name__}: {self.headline}>"

    def __str__(self) -> str:
        return self.headline

    def _repr_markdown_(self) -> str:
        return self.markdown

    def _repr_html_(self) -> Optional[str]:
        page = self.html
        return frame(page, 760) if fits(page) else None


@dataclass(frozen=True)
class Cause:
    """A part of a difference."""

    kind: str
    """"leak", "batch", "precision", "new", ...: `causes[].kind` of the schema."""
    bytes: int
    """Of the difference, negative where memory shrank."""
    ratio: Optional[float]
    """Factor by which sizes or counts changed."""
    sites: Tuple[str, ...]
    """Where it was allocated."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)


class Diff(_Result):
    """What `snapana diff` found."""

    @property
    def headline(self) -> str:
        """What changed, and why."""
        return str(figure(self.json, "headline"))

    @property
    def delta(self) -> int:
        """Active bytes of B less those of A."""
        return int(figure(self.json, "delta"))

    @property
    def causes(self) -> Tuple[Cause, ...]:
        """Largest first. Their bytes add up to delta."""
        return tuple(Cause(kind=figure(c, "kind"), bytes=figure(c, "bytes"), ratio=c.get("ratio") or None,
                           sites=texts(s.get("site") for s in c.get("sites") or ()), raw=c)
                     for c in figure(self.json, "causes"))


def diff(a: Union[Side, Sequence[Side]], b: Union[Side, Sequence[Side], None] = None, **options: Option) -> Diff:
    """Compares what is live in two snapshots: what grew, what shrank, and why. Each may be a file, a Report, or what
    torch.cuda.memory._snapshot() gives; a tuple of several runs tells chance from change. With a alone,
    at="step:2,step:9" or device="0,1" names two of its moments or GPUs. Options are the flags of `snapana diff`."""
    sides = [[_source(one) for one in (side if isinstance(side, tuple) else (side,))]
             for side in ((a,) if b is None else (a, b))]
    files = [source.name for source in sides[0]]
    if len(sides) == 2:
        files += ["--"] * (len(sides[0]) > 1 or len(sides[1]) > 1) + [source.name for source in sides[1]]
    line = flags(options)
    raw = parse(run("diff", "--json", *line, *files), "snapana.diff/1")
    return Diff("diff", line, files, [s for side in sides for s in side], raw)


@dataclass(frozen=True)
class Prediction:
    """What a run needs at other values."""

    values: Tuple[Number, ...]
    reserved_peak: int
    reserved_low: int
    reserved_high: int
    allocated_peak: int
    fits: Optional[bool]
    """None without a capacity."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)


class Fit(_Result):
    """What `snapana fit` predicts."""

    @property
    def headline(self) -> str:
        return self.law if self.largest is None else f"the largest that fits is {self.largest}; {self.law}"

    @property
    def law(self) -> str:
        """Of the peak, in words."""
        return str(figure(self.json, "law"))

    @property
    def largest(self) -> Optional[Number]:
        """The largest value that fits; None without a capacity, or where none does."""
        found: Optional[Number] = figure(self.json, "largest")
        return found

    @property
    def error(self) -> float:
        """The largest error, as a share of the peak, of a recording that is predicted from the others."""
        return float(figure(self.json, "largest_error"))

    @property
    def predictions(self) -> Tuple[Prediction, ...]:
        return tuple(Prediction(
            values=tuple(figure(p, "values")), reserved_peak=figure(p, "reserved_peak"),
            reserved_low=figure(p, "reserved_low"), reserved_high=figure(p, "reserved_high"),
            allocated_peak=figure(p, "allocated_peak"), fits=p.get("fits"), raw=p)
            for p in figure(self.json, "predictions"))


Values = Union[str, Number, Sequence[Number], Mapping[str, Union[Number, Sequence[Number]]],
               Sequence[Mapping[str, Number]]]


def _values(values: Optional[Values]) -> List[str]:
    """As --at and --to take them: 2,4 or batch=2,4, or several of batch=2,seq=512."""
    if values is None:
        return []
    if isinstance(values, str):
        return [values]
    if isinstance(values, (int, float)):
        return [str(values)]
    if isinstance(values, Mapping):
        columns = {name: [v] if isinstance(v, (int, float)) else list(v) for name, v in values.items()}
        if len(columns) == 1:
            return [f"{name}={','.join(map(str, column))}" for name, column in columns.items()]
        if len({len(column) for column in columns.values()}) != 1:
            raise ValueError("each name needs as many values as the others")
        return [",".join(f"{name}={v}" for name, v in zip(columns, row)) for row in zip(*columns.values())]
    if all(isinstance(v, Mapping) for v in values):
        return [",".join(f"{name}={v}" for name, v in row.items()) for row in values if isinstance(row, Mapping)]
    return [",".join(map(str, values))]


def fit(*recordings: Side, at: Values, to: Optional[Values] = None, capacity: Option = None, **options: Option) -> Fit:
    """Predicts how much memory a program needs at values that it was not run with, from recordings at a few.

    at has the values of the recordings, in their order: [2, 4], {"batch": [2, 4]}, or, of two names,
    [{"batch": 2, "seq": 512}, ...]. to has those to predict, written alike. With capacity the largest that fits is
    searched. Other options are the flags of `snapana fit`."""
    sources = [_source(one) for one in recordings]
    line = flags(dict(at=_values(at), to=_values(to), capacity=capacity, **options))
    files = [source.name for source in sources]
    return Fit("fit", line, files, sources, parse(run("fit", "--json", *line, *files), "snapana.fit/1"))


@dataclass(frozen=True)
class Setting:
    """A setting of the allocator, and what the run comes to under it."""

    text: str
    """As in PYTORCH_CUDA_ALLOC_CONF; empty for the defaults."""
    recorded: bool
    """Whether it is the run's own."""
    reserved_peak: int
    allocated_peak: int
    failures: int
    """Requests that fail."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)


class WhatIf:
    """What `snapana whatif` found: the run, replayed under other settings, or with changes of the program."""

    def __init__(self, raw: Json) -> None:
        self.json = raw
        """As report/json/SCHEMA.md describes it. Not to be changed."""

    @property
    def text(self) -> str:
        """The answer in a sentence."""
        return str(self.json.get("text") or self.json.get("advice") or "")

    @property
    def settings(self) -> Tuple[Setting, ...]:
        """What was tried, the recorded setting first; empty for changes of the program."""
        return tuple(Setting(text=figure(s, "text"), recorded=figure(s, "recorded"),
                             reserved_peak=figure(s, "reserved_peak"), allocated_peak=figure(s, "allocated_peak"),
                             failures=figure(s, "failures"), raw=s) for s in self.json.get("settings") or ())

    @property
    def best(self) -> Optional[Setting]:
        """The one that is recommended."""
        at = self.json.get("best", -1)
        return self.settings[at] if at >= 0 else None

    @property
    def fits(self) -> Optional[bool]:
        """Of changes: whether every request is served with them; None where that is not known."""
        found: Optional[bool] = (self.json.get("after") or {}).get("fits")
        return found

    def __repr__(self) -> str:
        return f"<snapana.WhatIf: {self.text}>"

    def __str__(self) -> str:
        return self.text


def whatif(path: Side, *, conf: Option = None, change: Option = None, search: Optional[bool] = None,
           capacity: Option = None, **options: Option) -> WhatIf:
    """Replays a run under other settings of the allocator (conf, as in PYTORCH_CUDA_ALLOC_CONF), with changes of the
    program (change="checkpoint=blocks.*", or a list), or searches for changes that make it fit (search=True). Other
    options are the flags of `snapana whatif`."""
    source = _source(path)
    line = flags(dict(conf=conf, change=change, search=search, capacity=capacity, **options))
    return WhatIf(parse(run("whatif", "--json", *line, source.name),
                        "snapana.whatif/1", "snapana.change/1", "snapana.search/1"))
