// Package load reads memory snapshots from files: pickles and JSON texts, as they are, compressed, in an
// archive or inside a page made by torch.cuda._memory_viz. Package unpack finds what is in a file,
// package pickle decodes it; here older schemas become the one of package snapshot, the writer is
// guessed and what the file lacks is listed. Input is hostile: it is refused with an error that
// says where and why, never run, and costs memory only as it is long.
package load

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/internal/pickle"
	"github.com/snapana/snapana/snapshot/internal/unpack"
)

// Options steer Open and Read. The zero value is usable.
type Options struct {
	// Partial keeps what came before a fault in the data; Snapshot.Partial then says what
	// the fault was.
	Partial bool
	// Progress, if set, is called about once per mebibyte of decoded data with the bytes of
	// the file read so far and its size, 0 when that is not known.
	Progress func(done, total int64)
	// MaxBytes caps the decoded size. 0 allows what honest compression can give: the larger of
	// snapshot.FreeBytes, and snapshot.MaxRatio times the compressed bytes; files that are not
	// compressed are then not capped.
	MaxBytes int64
	// Index picks one of several snapshots in an HTML page, from 0 on.
	Index int
	// Each, if set, gets every event while the file is read, in the file's order: event i of list number list. s is
	// the snapshot so far, of which the tables of strings, stacks and labels know what the event refers to. What it does
	// not keep is left out of the traces, and takes no memory. Nothing then says whether a ring was resized, or whether
	// the segments are those of one pool alone.
	Each func(s *snapshot.Snapshot, list, i int, e *snapshot.Event) (keep bool)
	// Lists, if set, is told the numbers that Each got for the lists of Snapshot.Traces, -1 for an empty one.
	Lists *[]int
}

// Open reads the snapshot at path, "-" for standard input. See Read.
func Open(ctx context.Context, path string, opt Options) (*snapshot.Snapshot, error) {
	if path == "-" {
		return Read(ctx, os.Stdin, "stdin", opt)
	}
	return Read(ctx, nil, path, opt)
}

// Read reads one snapshot from r, or from the file called name where r is nil: a pickle or JSON text, as
// it is or inside gzip, zstd, xz, bzip2, zip or a page made by torch.cuda._memory_viz. What it is, is told
// by its first bytes and never by its name, which is for messages only. Errors about the data are
// *FormatError; errors of r are wrapped. It may read past the end of the snapshot.
// When ctx is done it stops at the next read of r or of what that unpacks to, with ctx.Err().
func Read(ctx context.Context, r io.Reader, name string, opt Options) (snap *snapshot.Snapshot, err error) {
	limits := unpack.Options{MaxBytes: opt.MaxBytes, Snapshots: true, Index: opt.Index}
	var from *unpack.Input
	err = unpack.Read(ctx, r, name, limits, func(in *unpack.Input) (err error) {
		from = in
		snap, err = opt.decode(in)
		return err
	})
	if err != nil {
		return nil, err
	}
	snap.Name, snap.Pages = input.Base(ctx, name), from.Pages
	if from.Page {
		snap.Page = opt.Index
	}
	return snap, nil
}

// Recognize reports whether the file at path begins as a snapshot does, inside of whatever packs it.
func Recognize(ctx context.Context, path string) bool {
	enough, likely := errors.New("enough was read"), false
	info, err := input.Stat(ctx, path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	unpack.Read(ctx, nil, path, unpack.Options{Snapshots: true}, func(in *unpack.Input) error {
		likely = (in.Kind == unpack.Pickle || in.Kind == unpack.JSON) && in.Likely()
		return enough
	})
	return likely
}

// bom is the byte order mark that some programs put before a text.
const bom = "\xef\xbb\xbf"

// decode reads the bare pickle or JSON text that was inside.
func (opt Options) decode(in *unpack.Input) (*snapshot.Snapshot, error) {
	po := pickle.Options{Size: in.Size, Partial: opt.Partial}
	decode := pickle.Decode
	switch in.Kind {
	case unpack.Pickle:
	case unpack.JSON:
		decode = pickle.DecodeJSON
		if head, _ := in.R.Peek(len(bom)); string(head) == bom {
			in.R.Discard(len(bom))
			po.Size = 0
		}
	default:
		return nil, in.Stranger()
	}
	if opt.Progress != nil {
		po.Progress = func(int64) { opt.Progress(in.Progress()) }
	}
	var each []evidence // of the events of each list
	if opt.Each != nil {
		po.Each = func(s *snapshot.Snapshot, list, i int, e *snapshot.Event) bool {
			for len(each) <= list {
				each = append(each, evidence{})
			}
			each[list].event(s, i, e)
			return opt.Each(s, list, i, e)
		}
	}
	gate := &gate{r: in.Capped(), partial: opt.Partial}
	snap, info, err := decode(gate, po)
	if damage := gate.close(); damage != nil && err != nil {
		err = damage
	}
	if snap == nil {
		if fault := (*snapshot.FormatError)(nil); errors.As(err, &fault) && fault.Err == snapshot.ErrNotSnapshot {
			fault.Err = snapshot.Data
		}
		return nil, err
	}
	snap.Checksum = gate.checksum(info.Bytes)
	kind := "JSON"
	if in.Kind == unpack.Pickle {
		kind = fmt.Sprintf("pickle protocol %d", info.Protocol)
	}
	snap.Bytes, snap.Container, snap.Partial = info.Bytes, append(in.Containers, kind), err
	lists := len(snap.Traces)
	normalize(snap)
	var ev evidence
	if opt.Each == nil {
		reorder(snap)
		ev.traces(snap)
	}
	for _, list := range info.Lists {
		if list >= 0 {
			ev.add(&each[list])
		}
	}
	if opt.Lists != nil {
		*opt.Lists = info.Lists
	}
	ev.collect(snap)
	ev.lists = lists
	snap.Writer = ev.fingerprint(snap)
	if opt.Each == nil {
		if part(snap, ev.pool); snap.Part != nil {
			ev.recount(snap)
		}
	}
	ev.describe(snap)
	if in.Page && opt.Each == nil {
		describePage(snap)
	}
	return snap, nil
}

// gate stands at the end of a chain of readers. The pickle decoder reads ahead in a goroutine
// of its own, which may still be at it when decoding is over: once the gate is closed nobody
// is inside the chain, and nobody enters it.
type gate struct {
	mu      sync.Mutex
	r       io.Reader
	closed  bool
	partial bool  // take a fault for the end of the data, to keep what came before
	err     error // that fault

	n    int64
	sum  uint32   // CRC-32C of the n bytes that went through
	sums []uint32 // that of the first i+1 units
}

// unit is of what checksums are taken: who reads ahead does so by as much, or several of it.
const unit = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add sums up what went through.
func (g *gate) add(p []byte) {
	for len(p) > 0 {
		k := min(int64(len(p)), unit-g.n%unit)
		g.sum = crc32.Update(g.sum, castagnoli, p[:k])
		if g.n += k; g.n%unit == 0 {
			g.sums = append(g.sums, g.sum)
		}
		p = p[k:]
	}
}

// checksum is that of the units that n bytes take, once the gate is closed.
func (g *gate) checksum(n int64) uint32 {
	if units := int((n + unit - 1) / unit); units > 0 && units <= len(g.sums) {
		return g.sums[units-1]
	}
	return g.sum
}

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, io.EOF
	}
	n, err := g.r.Read(p)
	g.add(p[:n])
	if g.partial && err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		g.err, err = err, io.EOF
	}
	return n, err
}

func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.err
}
