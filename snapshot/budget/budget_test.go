package budget_test

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/snapshot/budget"
)

// The promise, as it is written in the manual.
func TestPromise(t *testing.T) {
	if got := budget.Memory(10_000_000); got != 256<<20+40_000_000 {
		t.Errorf("%d bytes of memory for 10 MB", got)
	}
	if got := budget.Time(10_000_000); got != 3*time.Second {
		t.Errorf("%v for 10 MB", got)
	}
}

// Steps end, those of a part sooner, and those of nobody never.
func TestSteps(t *testing.T) {
	all := budget.Share(0, 50) // a second
	if n := int(time.Second / budget.StepTime); !all.Part(1, 4).Draw(n/4) || all.Part(1, 4).Draw(n/4+1) ||
		!all.Draw(n) || all.Draw(1) {
		t.Error("a second is not a second")
	}
	var none *budget.Steps
	if !none.Draw(math.MaxInt) || !none.Part(1, 2).Draw(math.MaxInt) {
		t.Error("no steps end")
	}
}

// A meter goes through a context, counts what is read, and no less than was allowed.
func TestMeter(t *testing.T) {
	m := new(budget.Meter)
	from := budget.From(budget.With(t.Context(), m))
	if _, err := io.Copy(io.Discard, from.Reader(strings.NewReader("12345"))); err != nil || m.Bytes() != 5 {
		t.Errorf("%d bytes, %v", m.Bytes(), err)
	}
	if m.Allow(100); m.Bytes() != 100 {
		t.Errorf("%d bytes, 100 are allowed", m.Bytes())
	}
	if m.Allow(math.MaxInt64); budget.Memory(m.Bytes()) < 0 || budget.Time(m.Bytes()) < 0 {
		t.Error("bounds overflow")
	}
	if from.Finish(); !m.Finished() {
		t.Error("not finished")
	}
	none := budget.From(context.Background())
	none.Read(1)
	none.Allow(1)
	none.Finish()
	if none.Bytes() != 0 || none.Finished() {
		t.Error("nobody counts")
	}
}
