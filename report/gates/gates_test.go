package gates_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/report/gates"
)

// outcomes are one of each status, of a file and code with names that no format may take for its own.
func outcomes() []gate.Outcome {
	return []gate.Outcome{
		{Gate: gate.Peak, File: "a.pickle", Status: gate.Passed, Value: 1, Limit: 2},
		{Gate: gate.OfPhase, Name: "for\nward::error::%0A\x1b[2J", File: "a.pickle", Status: gate.Unknown, Why: gate.NoPhase,
			Limit: 2},
		{Gate: gate.Baseline, File: "b,c:d \u202e<&\">.pickle", Device: 1, Status: gate.Failed, Value: 3, Limit: 2,
			Site: "model.py:34 forward", Path: "src/model.py", Line: 34,
			Diff: diff.Compare(&footprint.Footprint{Top: -1}, &footprint.Footprint{Top: -1})},
		{Gate: gate.Reserved, File: "b,c:d \u202e<&\">.pickle", Device: 1, Status: gate.Failed, Value: 3, Limit: 2,
			Site: "(no Python stack)"},
	}
}

func write(t *testing.T, f gates.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := gates.Write(&b, f, outcomes()); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }); i >= 0 {
		t.Errorf("%s has the character %q", f, b.String()[i:])
	}
	return b.String()
}

func TestJUnit(t *testing.T) {
	var got struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Errors   int    `xml:"errors,attr"`
			Cases    []struct {
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(write(t, gates.JUnit)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 2 || got.Suites[0].Errors != 1 || got.Suites[0].Failures != 0 || got.Suites[1].Failures != 2 ||
		got.Suites[0].Cases[0].Failure != nil || got.Suites[0].Cases[1].Error == nil || got.Suites[1].Cases[1].Failure == nil {
		t.Errorf("%+v", got)
	}
}

func TestGitHub(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(write(t, gates.GitHub), "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, begins := range []string{"::notice title=", "::error title=", "::error file=src/model.py,line=34,title=", "::error title="} {
		if !strings.HasPrefix(lines[i], begins) {
			t.Errorf("line %q, want %q", lines[i], begins)
		}
		head, _, _ := strings.Cut(strings.TrimPrefix(lines[i], "::"), "::")
		if _, rest, _ := strings.Cut(head, "title="); strings.ContainsAny(rest, ",:\n") {
			t.Errorf("the title %q has characters that end it", rest)
		}
	}
}

func TestGitLab(t *testing.T) {
	var got []struct {
		Description, Fingerprint, Severity string
		CheckName                          string `json:"check_name"`
		Location                           struct {
			Path  string
			Lines struct{ Begin int }
		}
	}
	if err := json.Unmarshal([]byte(write(t, gates.GitLab)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 { // what passed is no problem
		t.Fatalf("%+v", got)
	}
	prints := map[string]bool{}
	for _, v := range got {
		prints[v.Fingerprint] = true
		if v.Description == "" || v.CheckName == "" || v.Severity != "major" || v.Location.Path == "" || v.Location.Lines.Begin < 1 {
			t.Errorf("%+v", v)
		}
	}
	if len(prints) != 3 || got[1].Location.Path != "src/model.py" || got[1].Location.Lines.Begin != 34 {
		t.Errorf("%+v", got)
	}
	var b bytes.Buffer
	if err := gates.Write(&b, gates.GitLab, outcomes()[:1]); err != nil || strings.TrimSpace(b.String()) != "[]" {
		t.Errorf("without a problem: %q, error %v", b.String(), err)
	}
}

// TestParsers has others read what is written: junitparser and sarif-tools of Python, where they are installed.
// SNAPANA_PARSERS names a Python that has both.
func TestParsers(t *testing.T) {
	python := os.Getenv("SNAPANA_PARSERS")
	if python == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("SNAPANA_PARSERS is not set")
		}
		t.Skip("SNAPANA_PARSERS names no Python with junitparser and sarif-tools")
	}
	dir := t.TempDir()
	for _, f := range []gates.Format{gates.JUnit, gates.SARIF} {
		file, err := os.Create(filepath.Join(dir, string(f)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, write(t, f)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, "-c", `
import sys
from junitparser import JUnitXml, Error, Failure
xml = JUnitXml.fromfile(sys.argv[1])
kinds = [type(r).__name__ for suite in xml for case in suite for r in case.result]
assert kinds == ["Error", "Failure", "Failure"], kinds
from sarif import loader
run = loader.load_sarif_file(sys.argv[2]).runs[0]
assert run.get_tool_name() == "snapana"
records = [r for r in run.get_records() if r["Severity"] == "error"]
assert [(r["Code"], r["Location"], r["Line"]) for r in records[1:2]] == [("baseline", "src/model.py", 34)], records
assert len(records) == 3, records
print("read")
`, filepath.Join(dir, "junit"), filepath.Join(dir, "sarif")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "read" {
		t.Errorf("%v: %s", err, out)
	}
}
