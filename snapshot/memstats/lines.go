package memstats

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
)

// maxLine is where longer lines are split.
const maxLine = 1 << 20

// lines gives the lines of a text, each without colors. Where a log holds a table as one quoted
// text, with \n for its line breaks, the rows of the table come one by one.
type lines struct {
	r    *bufio.Reader
	line int64 // number of the current line
	wait []string
	err  error
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine)} }

var colors = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// all ends with the text, or when reading failed.
func (l *lines) all(yield func(string) bool) {
	for s, ok := l.next(); ok && yield(s); s, ok = l.next() {
	}
}

func (l *lines) next() (string, bool) {
	if len(l.wait) > 0 {
		s := l.wait[0]
		l.wait = l.wait[1:]
		return s, true
	}
	if l.err != nil {
		return "", false
	}
	raw, err := l.r.ReadSlice('\n')
	if err != nil && err != bufio.ErrBufferFull {
		l.err = err
	}
	if len(raw) == 0 && l.err != nil {
		return "", false
	}
	l.line++
	s := strings.TrimRight(string(raw), "\r\n")
	if bytes.IndexByte(raw, 0x1b) >= 0 {
		s = colors.ReplaceAllString(s, "")
	}
	if strings.Contains(s, `|\n`) {
		l.wait = strings.Split(s, `\n`)
		s, l.wait = l.wait[0], l.wait[1:]
	}
	return s, true
}

// fault is why reading failed, nil at the end of the text.
func (l *lines) fault() error {
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

// tables reads a text or log line by line for every kind of table in it.
func (r *reader) tables(br *bufio.Reader) error {
	in := newLines(br)
	sum, smi := summary{r: r}, smiTable{r: r}
	for s := range in.all {
		if !strings.ContainsAny(s, "|:") && !strings.Contains(s, "process") {
			continue
		}
		took, err := sum.line(s, in.line)
		if err == nil && !took {
			err = smi.line(s, in.line)
		}
		if err != nil {
			return err
		}
	}
	if err := in.fault(); err != nil {
		return err
	}
	if err := sum.flush(true); err != nil {
		return err
	}
	return smi.flush()
}
