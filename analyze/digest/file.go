package digest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Ending is that of the names of digests.
const Ending = ".digest"

// Stat gives a file's Source but for what is in it. How long the recorder's file beside it is, is one of its options.
func Stat(ctx context.Context, path, options string) (Source, error) {
	src := Source{Path: path, Options: options, Size: -1}
	abs, err := input.Abs(path)
	if err != nil {
		return src, err
	}
	src.Path = abs
	info, err := input.Stat(ctx, path)
	if err == nil {
		src.Size, src.Modified = info.Size(), info.ModTime().UnixMicro()
		if _, bytes := sidecar.Beside(ctx, path); bytes >= 0 {
			src.Options = strings.TrimLeft(fmt.Sprintf("%s recorder=%d", options, bytes), " ")
		}
	}
	return src, err
}

// Hash reads the file for its checksum.
func (src *Source) Hash(ctx context.Context) error {
	f, err := input.Open(ctx, src.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	meter := budget.From(ctx)
	if _, err := io.Copy(h, &reading{ctx, f, meter, meter.Bytes()}); err != nil {
		return err
	}
	src.SHA256 = h.Sum(nil)
	return nil
}

// reading ends with its context. It allows the work on what it reads, which whoever decodes the file may give up early.
type reading struct {
	context.Context
	io.Reader
	meter *budget.Meter
	bytes int64 // of all inputs so far
}

func (r *reading) Read(p []byte) (int, error) {
	if err := r.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	r.bytes += int64(n)
	r.meter.Allow(r.bytes)
	return n, err
}

var strange = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

// Name is the name of the digest's file: the rank, if the name of the snapshot's file tells it, that file's place, and
// what is in it.
func (src *Source) Name() string {
	content := "unread"
	if len(src.SHA256) > 0 {
		content = hex.EncodeToString(src.SHA256[:8])
	}
	return src.prefix() + content + Ending
}

func (src *Source) prefix() string {
	who := strange.ReplaceAllString(clip(snapshot.Stem(src.Path), 64), "_")
	if n := snapshot.NamedRank(src.Path); n >= 0 {
		who = fmt.Sprintf("rank%05d", n)
	}
	place := sha256.Sum256([]byte(src.Path))
	return strings.TrimLeft(who, ".") + "-" + hex.EncodeToString(place[:4]) + "-"
}

// Folder is the digests in a folder, by the files that they are of.
type Folder struct {
	dir   string
	names map[string][]string // by prefix
}

// List reads the names in a folder, once for all files that are asked for. A folder that is not there has no digests.
func List(ctx context.Context, dir string) *Folder {
	f := &Folder{dir: dir, names: map[string][]string{}}
	entries, _ := input.ReadDir(ctx, dir)
	for _, e := range entries {
		if stem, ok := strings.CutSuffix(e.Name(), Ending); ok {
			prefix := stem[:strings.LastIndexByte(stem, '-')+1]
			f.names[prefix] = append(f.names[prefix], e.Name())
		}
	}
	return f
}

// Done reports whether the folder has a digest of a file as it is now, without reading it: one of the same path, size,
// time of change and options that says no fault.
func (f *Folder) Done(ctx context.Context, src *Source) bool {
	return slices.ContainsFunc(f.names[src.prefix()], func(name string) bool {
		d, err := Open(ctx, input.Join(f.dir, name))
		return err == nil && d.Fault == "" && d.Source.Path == src.Path && d.Source.Size == src.Size &&
			d.Source.Modified == src.Modified && d.Source.Options == src.Options
	})
}

// Has reports whether there is a file of the name that the digest of a file has whose content is known.
func (f *Folder) Has(src *Source) bool { return slices.Contains(f.names[src.prefix()], src.Name()) }

// Tried reports whether a digest says that the file could not be read.
func (f *Folder) Tried(src *Source) bool {
	unread := Source{Path: src.Path}
	return slices.Contains(f.names[src.prefix()], unread.Name())
}

// Open reads the digest at path. Errors of its data are *snapshot.FormatError.
func Open(ctx context.Context, path string) (*Digest, error) {
	if input.FilterOf(ctx) != nil {
		return nil, &snapshot.FormatError{Name: path, Offset: -1, Err: snapshot.ErrNotSnapshot,
			Msg: "cannot be redacted: it is a digest; make digests of redacted snapshots"}
	}
	f, err := input.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	budget.From(ctx).Read(len(data))
	d, err := Decode(data)
	if fault, ok := err.(*snapshot.FormatError); ok {
		fault.Name = cmp.Or(fault.Name, filepath.Base(path))
	}
	return d, err
}
