package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/store"
)

func TestCodes(t *testing.T) {
	seen := map[failure.Code]bool{}
	format := func(class error) error {
		return &snapshot.FormatError{Name: "x.pickle", Offset: 7, Msg: "bad", Err: class}
	}
	system := func(why error) error { return &fs.PathError{Op: "open", Path: "x.pickle", Err: why} }
	mark := func(code failure.Code) error { return failure.Mark(code, errors.New("so it is")) }
	for _, c := range []struct {
		err  error
		want failure.Code
		exit int
	}{
		{errors.New("no idea"), failure.Failed, 2},
		{format(nil), failure.Corrupt, 2},
		{format(snapshot.ErrCorrupt), failure.Corrupt, 2},
		{format(snapshot.ErrTruncated), failure.Truncated, 2},
		{format(snapshot.ErrRefused), failure.Unsafe, 2},
		{format(&snapshot.LimitError{Bytes: 5}), failure.Limit, 2},
		{format(snapshot.ErrNotSnapshot), failure.NotSnapshot, 2},
		{format(snapshot.Folder), failure.NotSnapshot, 2},
		{format(snapshot.ErrSnapshot), failure.WrongKind, 2},
		{format(sidecar.ErrForeign), failure.WrongKind, 2},
		{fmt.Errorf("x: %w", footprint.ErrNoFootprint), failure.WrongKind, 2},
		{system(fs.ErrNotExist), failure.NoSuchFile, 2},
		{system(input.ErrNoWriter), failure.NoData, 2},
		{&snapshot.NothingError{Msg: "nothing in it"}, failure.NoData, 2},
		{system(syscall.EACCES), failure.Permission, 3},
		{system(syscall.ENOSPC), failure.NoSpace, 3},
		{system(syscall.EIO), failure.IO, 3},
		{store.ErrChanged, failure.Changed, 2},
		{fmt.Errorf("x: %w", input.ErrUnavailable), failure.Unavailable, 3},
		{fmt.Errorf("%w: no library", device.ErrNoDriver), failure.NoDriver, 3},
		{&attribution.NoTraceError{}, failure.NoHistory, 2},
		{&attribution.NoKeyError{}, failure.NotInFile, 2},
		{&attribution.MomentError{}, failure.Usage, 2},
		{whatif.ErrAsync, failure.CannotReplay, 2},
		{&fit.Refusal{Why: "not of one program"}, failure.Unlike, 2},
		{&fit.Refusal{Why: "no events", NoHistory: true}, failure.NoHistory, 2},
		{fmt.Errorf("x: %w", &ranks.ExpectedError{Rank: 2, Expected: 2}), failure.Usage, 2},
		{failure.Mark(failure.WriteFailed, mark(failure.NoHistory)), failure.NoHistory, 2},
		{fmt.Errorf("read: %w", context.Canceled), failure.Stopped, 130},
		{failure.Mark(failure.WriteFailed, context.Canceled), failure.Stopped, 130},
		// What is written: the system's own reasons are told, what is not there is a fault of the place.
		{mark(failure.WriteFailed), failure.WriteFailed, 3},
		{failure.Mark(failure.WriteFailed, system(fs.ErrNotExist)), failure.WriteFailed, 3},
		{failure.Mark(failure.WriteFailed, system(syscall.ENOSPC)), failure.NoSpace, 3},
		{failure.Mark(failure.WriteFailed, system(syscall.EACCES)), failure.Permission, 3},
		// The outermost mark counts, before what it marks.
		{failure.Mark(failure.Usage, mark(failure.NoData)), failure.Usage, 2},
		{failure.Mark(failure.BadSettings, system(fs.ErrNotExist)), failure.BadSettings, 2},
		{mark(failure.Unread), failure.Unread, 2},
		{mark(failure.MissingRanks), failure.MissingRanks, 2},
		{mark(failure.GateFailed), failure.GateFailed, 1},
	} {
		f, kind := failure.Of(c.err), failure.KindOf(c.err)
		if f.Code != c.want || kind.Code != c.want || kind.Exit != c.exit {
			t.Errorf("%v: %s with exit code %d, want %s with %d", c.err, f.Code, kind.Exit, c.want, c.exit)
		}
		if f.Message != failure.Line(c.err.Error()) && f.Code != failure.Stopped || f.Hint == "" {
			t.Errorf("%v: %+v", c.err, f)
		}
		seen[c.want] = true
	}
	var codes []failure.Code
	for _, k := range failure.Kinds() {
		if !seen[k.Code] {
			t.Errorf("no error has the code %s", k.Code)
		}
		if slices.Contains(codes, k.Code) || k.Meaning == "" || k.Hint == "" || k.Exit == 0 ||
			strings.Contains(k.Hint+k.Meaning, "--") {
			t.Errorf("row %+v", k)
		}
		codes = append(codes, k.Code)
	}
}

func TestOf(t *testing.T) {
	err := fmt.Errorf("read it: %w", failure.Advise("try\nagain", &snapshot.FormatError{
		Name: "a\x1b[2Jb\n.pickle", Offset: 0, Msg: "bad \u009b byte\xff", Err: snapshot.ErrCorrupt}))
	f := failure.Of(failure.Mark(failure.Limit, err))
	if f.Code != failure.Limit || f.Hint != "try again" || f.File != "a [2Jb .pickle" ||
		f.Message != "read it: a [2Jb .pickle: at byte 0: bad   byte\ufffd" || f.Offset == nil || *f.Offset != 0 {
		t.Errorf("%+v", f)
	}
	f = failure.Of(&snapshot.FormatError{Name: "x", Offset: -1, Msg: "bad"})
	if f.Offset != nil || f.File != "x" {
		t.Errorf("%+v", f)
	}
	if failure.Mark(failure.Usage, nil) != nil || failure.Advise("do", nil) != nil {
		t.Error("an error of nothing")
	}
}

func TestLine(t *testing.T) {
	const want = "open a b [2J : no such \ufffd31m  file ü"
	if got := failure.Line("open a\nb\x1b[2J\u202e: no\tsuch\u009b\x9b31m  file ü"); got != want {
		t.Errorf("%q", got)
	}
}
