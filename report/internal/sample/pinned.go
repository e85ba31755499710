package sample

import (
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// Pinned is the analysis of a made-up run with pinned host memory: one of build.Programs.
func Pinned(t testing.TB, program string, opt build.Options) *analyze.Result {
	t.Helper()
	opt.Torch = 213
	made, ok := build.Named(program, 1, build.RandomOptions{Options: opt, Events: 1200})
	if !ok {
		t.Fatalf("no program %s", program)
	}
	s := buildtest.Read(t, made)
	s.Name = program + ".pickle"
	return analyzetest.Run(t, s, analyze.Options{NoReplay: true})
}
