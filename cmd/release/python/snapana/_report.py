"""`snapana report`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from ._frame import NOTEBOOK_PAGE, fits, frame
from ._run import Error, Json, Option, Path, figure, flags, name_of, parse, run, texts
from ._source import Snapshot, Source

_SCHEMA = "snapana.report/1"


class Verdict(str):
    """The outcome: a word such as "ghost", "fragmentation", "capacity" or "healthy" (`snapana man verdicts` has all),
    so that report.verdict == "ghost" tells a leak."""

    headline: str
    """One sentence."""
    next: str
    """What to do, where no finding says it; else empty."""
    fix: Tuple[str, ...]
    """Lines of Python for that."""
    raw: Mapping[str, Any]
    """As the JSON has it, with what this release of the package has no name for."""

    def __new__(cls, raw: Mapping[str, Any]) -> Verdict:
        self = super().__new__(cls, figure(raw, "status"))
        self.headline = figure(raw, "headline")
        self.next = raw.get("next") or ""
        self.fix = texts(raw.get("fix"))
        self.raw = raw
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        return Verdict, (self.raw,)


@dataclass(frozen=True)
class Finding:
    """One thing that was found, as `verdict.findings[]` of report/json/SCHEMA.md has it."""

    id: str
    """Stable name of the kind of finding."""
    status: str
    """The verdict that it speaks for. New ones may come in any release."""
    severity: str
    """"error", "warning" or "info"."""
    confidence: str
    """"high", "medium" or "low"."""
    device: Optional[int]
    """Ordinal, None for the whole file."""
    bytes: int
    """Bytes affected."""
    title: str
    """One sentence."""
    why: Tuple[str, ...] = field(repr=False)
    """The evidence in sentences."""
    next: Tuple[str, ...] = field(repr=False)
    """What to do, the first step first."""
    fix: Tuple[str, ...] = field(repr=False)
    """Lines of Python that show the remedy; empty where there are none."""
    stack: Tuple[str, ...] = field(repr=False)
    """The stack to look at, innermost frame first; empty where there is none."""
    events: Tuple[int, ...] = field(repr=False)
    """Trace events that prove it, the first 1000."""
    heuristic: bool
    """True for an inference, False for arithmetic on recorded facts."""
    cause: Optional[str]
    """Of ghost tensors, what probably keeps them."""
    evidence: Mapping[str, Any] = field(repr=False, compare=False)
    """The figures that the sentences are made from."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    """As the JSON has it, with what this release of the package has no name for."""


def _finding(raw: Mapping[str, Any]) -> Finding:
    device: int = figure(raw, "device")
    return Finding(
        id=figure(raw, "id"), status=figure(raw, "status"), severity=figure(raw, "severity"),
        confidence=figure(raw, "confidence"), device=device if device >= 0 else None, bytes=figure(raw, "bytes"),
        title=figure(raw, "title"), why=texts(raw.get("why")), next=texts(raw.get("next")), fix=texts(raw.get("fix")),
        stack=texts(raw.get("stack")), events=tuple(raw.get("events") or ()), heuristic=bool(raw.get("heuristic")),
        cause=raw.get("cause"), evidence=raw.get("evidence") or {}, raw=raw)


@dataclass(frozen=True)
class Figures:
    """The memory of one device, in bytes. None is unknown: a file without a trace tells no peaks."""

    device: int
    reserved: int
    """Of all segments, when the snapshot was taken."""
    active: int
    """Of live blocks, rounded, with those that wait for another stream."""
    allocated: int
    """Of them, what the program has not freed."""
    requested: int
    """Bytes as asked for, of active blocks."""
    peak_reserved: Optional[int]
    peak_active: Optional[int]
    peak_allocated: Optional[int]
    peak_requested: Optional[int]
    ooms: Optional[int]
    """Requests that failed."""
    retries: Optional[int]
    """Requests for which PyTorch gave up its cache."""
    bounds: Mapping[str, str] = field(repr=False, compare=False)
    """Whether each peak is "exact", "at_least" or "at_most" what it was, by "reserved", "active", ..."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    """As the JSON has it: events, steps, phases, moments and more."""


def _figures(raw: Mapping[str, Any]) -> Figures:
    bounds: Dict[str, str] = (raw.get("recording") or {}).get("peak") or {}
    peaks = raw.get("peaks") or {}

    def peak(name: str) -> Optional[int]:
        if name not in peaks or bounds.get(name) == "unknown":
            return None
        value: int = figure(peaks, name, "bytes")
        return value

    final = figure(raw, "final")
    return Figures(
        device=figure(raw, "device"), reserved=figure(final, "reserved"), active=figure(final, "active"),
        allocated=figure(final, "allocated"), requested=figure(final, "requested"), peak_reserved=peak("reserved"),
        peak_active=peak("active"), peak_allocated=peak("allocated"), peak_requested=peak("requested"),
        ooms=raw.get("ooms_total") if peaks else None, retries=raw.get("retries_total") if peaks else None,
        bounds=bounds, raw=raw)


class Report:
    """What `snapana report` found in a snapshot. In a notebook it shows the report's page."""

    def __init__(self, source: Source, line: Tuple[str, ...], raw: Json) -> None:
        self._source, self._line = source, line
        self._drawn: Dict[int, Tuple[str, str]] = {}
        self.json = raw
        """report.json, as report/json/SCHEMA.md describes it. Not to be changed."""
        self.verdict = Verdict(figure(raw, "verdict"))
        self.findings = tuple(_finding(f) for f in figure(raw, "verdict", "findings"))
        """Most important first, at most 100."""
        self.figures = {f.device: f for f in map(_figures, figure(raw, "devices"))}
        """Of each device, by its ordinal."""
        self.name: str = figure(raw, "source", "name")
        """Base name of the file."""

    @property
    def path(self) -> str:
        """Name of the file. A snapshot that was taken from memory has one for as long as the report lives."""
        return self._source.name

    @property
    def headline(self) -> str:
        return self.verdict.headline

    @property
    def markdown(self) -> str:
        """The report in Markdown, for issues and chats."""
        return (next(iter(self._drawn.values()), None) or self._draw(NOTEBOOK_PAGE))[0]

    @property
    def html(self) -> str:
        """The report's page, of 8 MiB at most: one file that needs no network."""
        return self._draw(8 << 20)[1]

    def save(self, path: Path) -> str:
        """Writes the page to a name that ends in .html, Markdown to one in .md, report.json to one in .json; else the
        whole folder that `snapana report -o` writes. Gives the name."""
        name = name_of(path)
        ending = os.path.splitext(name)[1].lower()
        if ending not in (".html", ".md", ".json"):
            self._same(run("report", "--json", f"--output={name}", *self._line, self._source.name))
            return name
        with tempfile.TemporaryDirectory(prefix="snapana-") as folder:
            out = run("report", "--format=" + ("md" if ending == ".md" else "json"), f"--output={folder}", *self._line,
                      self._source.name)
            with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
                text = file.read()
            self._same(text)
            if ending == ".html":
                with open(os.path.join(folder, "report.html"), encoding="utf-8", newline="") as file:
                    out = file.read()
            elif ending == ".json":
                out = text
        _write(name, out)
        return name

    def _draw(self, most: int) -> Tuple[str, str]:
        """Markdown, and a page of so many bytes at most."""
        if most not in self._drawn:
            with tempfile.TemporaryDirectory(prefix="snapana-") as folder:
                size = () if any(f.startswith("--max-page=") for f in self._line) else (f"--max-page={most}",)
                markdown = run("report", "--format=md", f"--output={folder}", *size, *self._line, self._source.name)
                with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
                    self._same(file.read())
                with open(os.path.join(folder, "report.html"), encoding="utf-8", newline="") as file:
                    self._drawn[most] = markdown, file.read()
        return self._drawn[most]

    def _same(self, text: str) -> None:
        """Holds that what was drawn now is of the snapshot whose figures are here."""
        now = figure(parse(text, _SCHEMA), "source", "checksum")
        if now != figure(self.json, "source", "checksum"):
            raise Error(f"{self._source.name} is another snapshot than it was when this report was made", "changed",
                        "make the report again")

    def __repr__(self) -> str:
        return f"<snapana.Report {self.name}: {self.verdict.upper()}  {self.verdict.headline}>"

    def __str__(self) -> str:
        lines = [f"{self.verdict.upper()}  {self.verdict.headline}"]
        for finding in self.findings[:1]:
            lines += [f"  {why}" for why in finding.why] + [f"Next: {step}" for step in finding.next]
        return "\n".join(lines + ([f"Next: {self.verdict.next}"] if self.verdict.next else []))

    def _repr_markdown_(self) -> str:
        return self.markdown

    def _repr_html_(self) -> Optional[str]:
        page = self._draw(NOTEBOOK_PAGE)[1]
        return frame(page, 760) if fits(page) else None


def _write(name: str, text: str) -> None:
    """Puts a file in its place as a whole."""
    part = f"{name}.{os.getpid()}.tmp"
    try:
        with open(part, "x", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(part, name)
    except BaseException as err:
        if not isinstance(err, FileExistsError):
            _forget(part)
        raise


def _forget(name: str) -> None:
    try:
        os.unlink(name)
    except OSError:
        pass



def report(
    path: Snapshot,
    *,
    capacity: Option = None,
    recorder: Option = None,
    partial: Optional[bool] = None,
    max_bytes: Option = None,
    index: Optional[int] = None,
    from_: Option = None,
    to: Option = None,
    **options: Option,
) -> Report:
    """Analyzes a snapshot: a file, an object of a store (s3://bucket/key), or what torch.cuda.memory._snapshot() gives.

    The recorder's NAME.snapana beside NAME.pickle is used. capacity is the memory of each GPU, in bytes or as "80GiB";
    recorder names another file of the recorder; partial reads a damaged file as far as possible; max_bytes allows input
    that unpacks to more. Each further option is a flag of `snapana report`: source="." is --source ., and so on. Raises
    Error: bad input has the exit code 2."""
    source = Source(path)
    line = tuple(flags(dict(capacity=capacity, recorder=recorder, partial=partial, max_bytes=max_bytes, index=index,
                            from_=from_, to=to, **options)))
    return Report(source, line, parse(run("report", "--json", *line, source.name), _SCHEMA))
