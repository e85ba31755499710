package memstats

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
)

var colors = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// maxLine is where longer lines are split.
const maxLine = 1 << 20

// eachLine gives the lines of a text and their numbers, each without colors. Where a log holds a
// table as one quoted text, with \n for its line breaks, the rows of the table come one by one. It
// ends where reading fails.
func eachLine(r *bufio.Reader, use func(s string, line int64)) error {
	var err error
	for line := int64(1); err == nil || err == bufio.ErrBufferFull; line++ {
		var raw []byte
		if raw, err = r.ReadSlice('\n'); len(raw) == 0 {
			break
		}
		s := strings.TrimRight(string(raw), "\r\n")
		if bytes.IndexByte(raw, 0x1b) >= 0 {
			s = colors.ReplaceAllString(s, "")
		}
		rows := []string{s}
		if strings.Contains(s, `|\n`) {
			rows = strings.Split(s, `\n`)
		}
		for _, row := range rows {
			use(row, line)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// tables reads a text or log line by line for every kind of table in it.
func (r *reader) tables(br *bufio.Reader) error {
	sum, smi := summary{r: r}, smiTable{r: r}
	err := eachLine(br, func(s string, line int64) {
		if (strings.ContainsAny(s, "|:") || strings.Contains(s, "process")) && !sum.line(s, line) {
			smi.line(s, line)
		}
	})
	if err == nil {
		sum.flush(true)
		smi.flush()
	}
	return err
}
