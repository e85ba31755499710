package analyze_test

import (
	"context"
	"errors"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestCancel stops an analysis and a replay that nobody waits for any more.
func TestCancel(t *testing.T) {
	s := buildtest.Read(t, build.Random(1, build.RandomOptions{Events: 3000}))
	ctx, cancel := context.WithCancel(t.Context())
	p, v, err := whatif.Load(ctx, s, timeline.Build(s, 0))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if r, err := analyze.Run(ctx, s, analyze.Options{}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("analysis: result %v, error %v", r != nil, err)
	}
	if _, _, err := whatif.Load(ctx, s, timeline.Build(s, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("validation: error %v", err)
	}
	if _, err := whatif.Ask(ctx, s, p, v, whatif.Question{}); !errors.Is(err, context.Canceled) {
		t.Errorf("replay: error %v", err)
	}
}
