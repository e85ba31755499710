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

// next returns false at the end, or when reading failed.
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
