package rewrite

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines rewrites a text line by line, each with what is before its first carriage return or line feed. Of a line of more
// than mostText bytes the pieces are taken for lines.
func Lines(w io.Writer, r io.Reader, texts *Texts) error {
	br := bufio.NewReaderSize(r, 1<<20)
	out := bufio.NewWriterSize(w, flushAt)
	for {
		line, err := br.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			out.Flush()
			return err
		}
		for rest := line; len(rest) > 0; {
			n := bytes.IndexAny(rest, "\r\n")
			if n < 0 {
				n = len(rest)
			}
			out.WriteString(texts.Line(string(rest[:n])))
			for n < len(rest) && (rest[n] == '\r' || rest[n] == '\n') {
				out.WriteByte(rest[n])
				n++
			}
			rest = rest[n:]
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
	}
}
