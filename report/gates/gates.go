// Package gates writes what came of limits in the formats that CI systems read.
package gates

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// Format is a format of CI systems.
type Format string

// The formats.
const (
	JUnit  Format = "junit"  // test results, as Jenkins, GitLab and others read them
	GitHub Format = "github" // annotations of GitHub Actions
	GitLab Format = "gitlab" // GitLab's code quality report
	SARIF  Format = "sarif"  // SARIF 2.1.0
)

// Formats lists them.
func Formats() []Format { return []Format{JUnit, GitHub, GitLab, SARIF} }

// Write writes outcomes in a format.
func Write(w io.Writer, f Format, outcomes []gate.Outcome) error {
	switch f {
	case JUnit:
		return writeJUnit(w, outcomes)
	case GitHub:
		return writeGitHub(w, outcomes)
	case GitLab:
		return writeGitLab(w, outcomes)
	}
	return writeSARIF(w, outcomes)
}

// name is what a gate is called in a list of tests.
func name(o *gate.Outcome) string {
	s := string(o.Gate)
	if o.Name != "" {
		s += " " + o.Name
	}
	return fmt.Sprintf("%s, GPU %d", s, o.Device)
}

// place is the file and the line of the code that has most of the memory, as a path below the working folder: "" where it
// lies elsewhere, as installed packages do.
func place(o *gate.Outcome) (file string, line int) {
	path := filepath.FromSlash(o.Path)
	if filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return "", 0
		}
		if path, err = filepath.Rel(here, path); err != nil {
			return "", 0
		}
	}
	if !filepath.IsLocal(path) || o.Line < 1 || strings.HasPrefix(path, "<") {
		return "", 0
	}
	return filepath.ToSlash(path), o.Line
}

type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Class   string  `xml:"classname,attr"`
	Name    string  `xml:"name,attr"`
	Failure *reason `xml:"failure"`
	Error   *reason `xml:"error"`
	Output  string  `xml:"system-out,omitempty"`
}

type reason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(w io.Writer, outcomes []gate.Outcome) error {
	var out suites
	for i := range outcomes {
		o := &outcomes[i]
		if n := len(out.Suites); n == 0 || out.Suites[n-1].Name != chart.Plain(o.File) {
			out.Suites = append(out.Suites, suite{Name: chart.Plain(o.File)})
		}
		s := &out.Suites[len(out.Suites)-1]
		s.Tests++
		text := chart.Plain(verdict.GateOf(o))
		c := testcase{Class: s.Name, Name: chart.Plain(name(o))}
		switch o.Status {
		case gate.Failed:
			s.Failures++
			c.Failure = &reason{text, string(o.Gate), text}
		case gate.Unknown:
			s.Errors++
			c.Error = &reason{text, string(o.Gate), text}
		default:
			c.Output = text
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", " ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// writeGitHub writes workflow commands, in which these characters have a meaning
// (github.com/actions/toolkit, packages/core/src/command.ts).
func writeGitHub(w io.Writer, outcomes []gate.Outcome) error {
	text := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for i := range outcomes {
		o := &outcomes[i]
		level := map[gate.Status]string{gate.Failed: "error", gate.Unknown: "error", gate.Passed: "notice"}[o.Status]
		where := ""
		if file, line := place(o); file != "" && o.Status != gate.Passed {
			where = fmt.Sprintf("file=%s,line=%d,", property.Replace(chart.Plain(file)), line)
		}
		if _, err := fmt.Fprintf(w, "::%s %stitle=%s::%s\n", level, where,
			property.Replace(chart.Plain("snapana: "+name(o))),
			text.Replace(chart.Plain(o.File+": "+verdict.GateOf(o)))); err != nil {
			return err
		}
	}
	return nil
}

type issue struct {
	Description string   `json:"description"`
	CheckName   string   `json:"check_name"`
	Fingerprint string   `json:"fingerprint"`
	Severity    string   `json:"severity"`
	Location    location `json:"location"`
}

type location struct {
	Path  string `json:"path"`
	Lines struct {
		Begin int `json:"begin"`
	} `json:"lines"`
}

// writeGitLab writes what docs.gitlab.com/ci/testing/code_quality calls a Code Quality report: problems only.
func writeGitLab(w io.Writer, outcomes []gate.Outcome) error {
	list := []issue{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Status == gate.Passed {
			continue
		}
		v := issue{
			Description: chart.Plain(verdict.GateOf(o)), CheckName: "snapana " + string(o.Gate), Severity: "major",
			Fingerprint: fingerprint(o),
		}
		if v.Location.Path, v.Location.Lines.Begin = place(o); v.Location.Path == "" {
			v.Location.Path, v.Location.Lines.Begin = chart.Plain(o.File), 1
		}
		list = append(list, v)
	}
	return encode(w, list)
}

// fingerprint is the same for the same limit of the same file, whatever came of it.
func fingerprint(o *gate.Outcome) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(o.File+"\x00"+name(o))))
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
