package unpack

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"regexp"

	"github.com/snapana/snapana/snapshot"
)

// page is an HTML page made by torch/cuda/_memory_viz.py (_format_viz): its script holds
// [{"name": ..., "base64": ...}, ...], each a pickle.
type page struct {
	r     *bufio.Reader
	count int  // snapshots seen so far
	own   bool // it is one of our reports
}

// page opens one of the snapshots in a page.
func (in *Input) page(r *bufio.Reader, depth int) error {
	p := &page{r: r}
	in.Page = true
	for p.count == 0 || p.count-1 != in.opt.Index {
		found, err := p.next()
		if err != nil {
			return err
		}
		if !found {
			return p.missing(in.opt.Index)
		}
	}
	inside := base64.NewDecoder(base64.StdEncoding, &quoted{r: p.r})
	err := in.unwrap(&layer{in: in, r: inside, kind: isHTML}, 0, depth+1)
	if err != nil {
		return err
	}
	for found := true; found && err == nil; {
		found, err = p.next()
	}
	in.Pages = p.count
	return nil
}

// Marks in a page: where a snapshot begins, and a key that only the pre-digested plots of
// torch 2.0 have.
var (
	begins      = regexp.MustCompile(`"base64"[ \t\r\n]*:[ \t\r\n]*"`)
	keyDigested = []byte(`"suffix_table"`)
	keyOwn      = []byte(`<meta name="generator" content="snapana">`)
)

// maxMark is how long a mark may be to be found over the end of a window.
const maxMark = 1 << 10

// next moves to the first byte of the next base64 string.
func (p *page) next() (bool, error) {
	for {
		window, err := p.r.Peek(p.r.Size())
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, err
		}
		if p.count == 0 && bytes.Contains(window, keyDigested) {
			return false, notSnapshot("is a plot that torch 2.0 made of a snapshot, with the snapshot itself left " +
				"out; open the snapshot it was made from")
		}
		p.own = p.own || p.count == 0 && bytes.Contains(window, keyOwn)
		if at := begins.FindIndex(window); at != nil {
			p.r.Discard(at[1])
			p.count++
			return true, nil
		}
		if err != nil {
			return false, nil
		}
		p.r.Discard(len(window) - maxMark)
	}
}

func (p *page) missing(index int) error {
	if p.count > 0 {
		return refuse(isHTML, snapshot.ErrNotSnapshot,
			"the page has %d snapshots, numbered from 0; there is no number %d", p.count, index)
	}
	if p.own {
		return notSnapshot("is a page about a snapshot, to be opened in a browser, and not the snapshot itself")
	}
	return notSnapshot("is an HTML page without a snapshot in it; " +
		"pages of `python -m torch.cuda._memory_viz trace_plot` contain one")
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
	if _, err := q.r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
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
