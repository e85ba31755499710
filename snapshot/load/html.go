package load

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// page is an HTML page made by torch/cuda/_memory_viz.py (_format_viz): its script holds
// [{"name": ..., "base64": ...}, ...], each a pickle.
type page struct {
	r     *bufio.Reader
	count int // snapshots seen so far
}

// openHTML opens one of the snapshots in a page.
func (s *source) openHTML(r *bufio.Reader, depth int) (*snapshot.Snapshot, error) {
	p := &page{r: r}
	s.html = p
	for {
		found, err := p.next()
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, p.missing(s)
		}
		if p.count-1 == s.opt.Index {
			break
		}
	}
	snap, err := s.unwrap(unpacked{base64.NewDecoder(base64.StdEncoding, &quoted{r: p.r}), "HTML"}, 0, depth+1)
	if err != nil {
		return nil, err
	}
	for {
		found, err := p.next()
		if err != nil || !found {
			break
		}
	}
	if p.count > 1 {
		snap.Missing = append(snap.Missing, fmt.Sprintf(
			"%d of the %d snapshots in this page: this is number %d (choose with --index, from 0 on)", p.count-1, p.count, s.opt.Index))
	}
	return snap, nil
}

// Marks in a page: the key of a snapshot, and keys that only the pre-digested plots of
// torch 2.0 have.
var (
	keyBase64   = []byte(`"base64"`)
	keyDigested = []byte(`"suffix_table"`)
)

// next moves to the first byte of the next base64 string.
func (p *page) next() (bool, error) {
search:
	for {
		window, err := p.r.Peek(p.r.Size())
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, err
		}
		if p.count == 0 && bytes.Contains(window, keyDigested) {
			return false, notSnapshot("", "is a plot that torch 2.0 made of a snapshot, with the snapshot itself left out; open the snapshot it was made from")
		}
		for from := 0; ; {
			at := bytes.Index(window[from:], keyBase64)
			if at < 0 {
				break
			}
			at += from
			rest := bytes.TrimLeft(window[at+len(keyBase64):], " \t\r\n")
			if len(rest) < 2 && at > 0 && err == nil { // the value is beyond the window
				p.r.Discard(at)
				continue search
			}
			if len(rest) > 0 && rest[0] == ':' {
				if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 && rest[0] == '"' {
					p.r.Discard(len(window) - len(rest) + 1)
					p.count++
					return true, nil
				}
			}
			from = at + len(keyBase64)
		}
		if err != nil {
			return false, nil
		}
		p.r.Discard(len(window) - 64)
	}
}

func (p *page) missing(s *source) error {
	if p.count > 0 {
		return &snapshot.FormatError{Offset: -1, Op: "HTML", Err: snapshot.ErrNotSnapshot,
			Msg: fmt.Sprintf("the page holds %d snapshots, there is no number %d (they count from 0)", p.count, s.opt.Index)}
	}
	return notSnapshot(s.name, "is an HTML page without a snapshot in it; pages of `python -m torch.cuda._memory_viz trace_plot` hold one")
}

// describe adds what is peculiar to pages.
func (p *page) describe(s *snapshot.Snapshot) {
	if paired, pairless := freePairs(s); pairless && !paired {
		s.Missing = append(s.Missing, "memory that came and went: no allocation of the trace is freed in it, so this page was probably made with "+
			"trace_plot -f, which removes them; peaks are too low")
	}
}

// freePairs reports whether some device's trace frees what it allocated, and whether one
// allocates and never does.
func freePairs(s *snapshot.Snapshot) (paired, pairless bool) {
	for _, t := range s.Traces {
		live := make(map[uint64]bool)
		for i := range t.Len() {
			switch e := t.At(i); e.Action {
			case snapshot.Alloc:
				live[e.Addr] = true
			case snapshot.FreeRequested, snapshot.FreeCompleted:
				if live[e.Addr] {
					return true, false
				}
			}
		}
		pairless = pairless || len(live) > 1
	}
	return false, pairless
}

// quoted reads up to the next double quote.
type quoted struct {
	r    *bufio.Reader
	done bool
}

func (q *quoted) Read(b []byte) (int, error) {
	if q.done {
		return 0, io.EOF
	}
	if q.r.Buffered() == 0 {
		if _, err := q.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
	window, _ := q.r.Peek(min(q.r.Buffered(), len(b)))
	n := copy(b, window)
	if at := bytes.IndexByte(window, '"'); at >= 0 {
		q.done, n = true, at
		q.r.Discard(1)
	}
	q.r.Discard(n)
	if n == 0 && q.done {
		return 0, io.EOF
	}
	return n, nil
}

// quote shortens and quotes a piece of the input for a message.
func quote(b []byte) string {
	const most = 40
	s := strings.ToValidUTF8(string(b[:min(most, len(b))]), "")
	q := strconv.Quote(s)
	if len(b) > most {
		q += "..."
	}
	return q
}
