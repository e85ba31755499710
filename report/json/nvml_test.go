package json

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

func TestNVML(t *testing.T) {
	r := analyzetest.Reading()
	var b bytes.Buffer
	if err := WriteNVML(&b, r, verdict.JudgeReading(r, 4101)); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("%d lines", n)
	}
	golden.Check(t, "nvml.json", b.Bytes())
}
