package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// fileArgs are the arguments of every tool that reads one snapshot.
type fileArgs struct {
	File     string `json:"file" jsonschema:"path of the snapshot (.pickle, also compressed), below the server's folders"`
	Partial  bool   `json:"partial,omitempty" jsonschema:"read a damaged or truncated file as far as possible"`
	Recorder string `json:"recorder,omitempty" jsonschema:"path of the recorder's file (default: NAME.snapana beside NAME.pickle)"`
	bound
}

// bound is the argument of every tool.
type bound struct {
	MaxBytes int `json:"max_bytes,omitempty" jsonschema:"most bytes of the answer, 2048 to 32768 (default 8192)"`
}

func (b bound) most() (int, error) {
	switch {
	case b.MaxBytes == 0:
		return DefaultBytes, nil
	case b.MaxBytes < leastBytes || b.MaxBytes > mostBytes:
		return 0, failure.Mark(failure.Usage, fmt.Errorf("invalid max_bytes %d; expected %d to %d", b.MaxBytes, leastBytes,
			mostBytes))
	}
	return b.MaxBytes, nil
}

// file is a snapshot that was read.
type file struct {
	place
	key, stamp string
	from       fileArgs
	snap       *snapshot.Snapshot
	rec        *sidecar.File // what the recorder wrote beside it, nil for nothing
	unread     error         // why that was not used
}

// run is a snapshot that was analyzed.
type run struct {
	*file
	*analyze.Result
	capacity string // that was given, "" for none
}

// regular wants a file to be one.
func (p *place) regular() error {
	if p.info.IsDir() {
		return failure.Mark(failure.WrongKind, fmt.Errorf("%s is a folder", p.name))
	}
	return nil
}

// read reads a snapshot, or takes it from the shelf.
func (s *server) read(ctx context.Context, from fileArgs) (*file, error) {
	at, err := s.roots.find(ctx, from.File)
	if err == nil {
		err = at.regular()
	}
	if err != nil {
		return nil, err
	}
	stamp, err := at.stamp(ctx)
	if err != nil {
		return nil, err
	}
	beside := s.roots.beside(ctx, &at)
	if from.Recorder != "" {
		named, err := s.roots.find(ctx, from.Recorder)
		if err == nil {
			err = named.regular()
		}
		if err != nil {
			return nil, err
		}
		beside = &named
	}
	if beside != nil {
		more, err := beside.stamp(ctx)
		if err != nil {
			return nil, err
		}
		stamp += " " + more
	}
	key := fmt.Sprintf("%q %q %v", at.path, from.Recorder, from.Partial)
	v, err := s.shelf.get(ctx, "file "+key, stamp, func(ctx context.Context) (any, error) {
		return open(ctx, &file{place: at, key: key, stamp: stamp, from: from}, beside)
	})
	if err != nil {
		return nil, err
	}
	return v.(*file), nil
}

func open(ctx context.Context, f *file, beside *place) (*file, error) {
	in, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if f.snap, err = load.Read(ctx, in, f.name, load.Options{Partial: f.from.Partial}); err != nil {
		return nil, err
	}
	if now, err := in.Stat(); err == nil && (now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime())) {
		return nil, failure.Mark(failure.Changed, fmt.Errorf("%s changed while it was read", f.name))
	}
	if beside != nil {
		rec, err := beside.open(ctx)
		if err != nil {
			return nil, err
		}
		defer rec.Close()
		f.rec, f.unread = sidecar.Read(ctx, rec, beside.name, sidecar.Options{Partial: f.from.Partial})
		if stopped := ctx.Err(); stopped != nil {
			return nil, stopped
		}
		if f.unread != nil && f.from.Recorder != "" {
			return nil, f.unread
		}
	}
	return f, nil
}

// analyze analyzes a snapshot, or takes that from the shelf. Capacity is the memory of each device, 0 unknown.
func (s *server) analyze(ctx context.Context, from fileArgs, capacity capacity) (*run, error) {
	bytes, err := capacity.bytes("capacity")
	if err != nil {
		return nil, err
	}
	f, err := s.read(ctx, from)
	if err != nil {
		return nil, err
	}
	v, err := s.shelf.get(ctx, fmt.Sprintf("run %s %d", f.key, bytes), f.stamp, func(ctx context.Context) (any, error) {
		r, err := analyze.Run(ctx, f.snap, analyze.Options{Capacity: bytes, Recorder: f.rec, Unread: f.unread})
		return &run{f, r, string(capacity)}, err
	})
	if err != nil {
		return nil, err
	}
	return v.(*run), nil
}

// device is the device that was asked for, or the one that reserved most.
func (r *run) device(n *int) (*analyze.Device, error) {
	if len(r.Devices) == 0 || r.Main() == nil {
		return nil, failure.Mark(failure.NoData, fmt.Errorf("%s has no segments and no events, so nothing is live in it",
			r.name))
	}
	if n == nil {
		return r.Main(), nil
	}
	for i := range r.Devices {
		if r.Devices[i].Timeline.Device == *n {
			return &r.Devices[i], nil
		}
	}
	return nil, failure.Mark(failure.NotInFile, fmt.Errorf("invalid device %d; the file has memory of GPU %s", *n,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Snapshot.UsedDevices()), " ", ", "), "[]")))
}

// arguments are those of a call about this run, with others.
func (r *run) arguments(more ...any) map[string]any {
	out := map[string]any{"file": r.name}
	if r.from.Partial {
		out["partial"] = true
	}
	if r.from.Recorder != "" {
		out["recorder"] = r.from.Recorder
	}
	if r.capacity != "" {
		out["capacity"] = r.capacity
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

// to is a call about this run.
func (r *run) to(tool, why string, more ...any) call {
	args := r.arguments(more...)
	if tool != "report" && tool != "whatif" && tool != "oom" {
		delete(args, "capacity")
	}
	if tool == "oom" {
		delete(args, "partial")
		delete(args, "recorder")
	}
	return call{tool, args, why}
}

// beside is a call about what lies in the folder of a file.
func (p *place) beside() call {
	return call{"report", map[string]any{"file": input.Dir(p.name)}, "the snapshots in its folder"}
}

// all reads several snapshots.
func (s *server) all(ctx context.Context, names []string) (out []*run, key, stamp string, err error) {
	for _, name := range names {
		r, err := s.analyze(ctx, fileArgs{File: name}, "")
		if err != nil {
			return nil, "", "", err
		}
		out, key, stamp = append(out, r), key+" "+r.key, stamp+" "+r.stamp
	}
	if len(out) == 0 {
		err = failure.Mark(failure.Usage, errors.New("the names of files are missing"))
	}
	return out, key, stamp, err
}

// oneOf wants a word to be one of a list.
func oneOf[S ~string](what, word string, list []S) error {
	if slices.Contains(list, S(word)) {
		return nil
	}
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return failure.Mark(failure.Usage, fmt.Errorf("unknown %s %q; choose from %s", what, word, strings.Join(words, ", ")))
}
