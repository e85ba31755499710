package memstats

import (
	"bufio"
	"strings"
)

// tables reads a text or log line by line for every kind of table in it.
func (r *reader) tables(br *bufio.Reader) error {
	in := newLines(br)
	sum, smi := summary{r: r}, smiTable{r: r}
	for {
		s, ok := in.next()
		if !ok {
			break
		}
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
