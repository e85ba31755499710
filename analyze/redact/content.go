package redact

import (
	"bufio"
	"bytes"
	"io"
	"regexp"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/rewrite"
)

var (
	protocol0 = regexp.MustCompile(`^(\([dlt][p.(q]|\(+[dl]p\d|[\]}][qr(.VUXS]|(\(i|\(?c)[A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n[(pq)\]}.N])`)
	isJSON    = regexp.MustCompile(`^(?:\xef\xbb\xbf)?\s*[\[{]\s*(?:["\[{\]}]|-?\d|true|false|null|NaN|-?Inf|$)`)
	isLogLine = regexp.MustCompile(`^\s*\[[^"\]]*[A-Za-z][^"\]]*\]|^\s*\[[\d, ]*\] *[^\s,\[\]{}]`) // "[rank0]: ...", "[1,0]<stderr>:"
)

// Filter is what makes all files of a context redacted.
func (r *Redactor) Filter() *input.Filter {
	return &input.Filter{Content: r.Copy, Name: r.Name, Path: r.Given}
}

// Copy copies a file that is not packed, redacted: a pickle, JSON, MessagePack as .snapana files have it, or a text. Others
// are refused.
func (r *Redactor) Copy(w io.Writer, from *bufio.Reader) error {
	head, err := from.Peek(512)
	if len(head) == 0 {
		if err == io.EOF {
			return nil
		}
		return err
	}
	texts := r.Texts()
	switch {
	case isPickle(head):
		for {
			if err := rewrite.Pickle(w, from, texts); err != nil {
				return err
			}
			// Counters are dumped one after the other.
			if head, _ := from.Peek(2); len(head) < 2 || !isPickle(head) || head[0] != 0x80 {
				return nil
			}
		}
	case head[0] >= 0x80 && head[0] <= 0x9f, head[0] >= 0xdc && head[0] <= 0xdf:
		return rewrite.MessagePack(w, from, texts)
	case isJSON.Match(head) && !isLogLine.Match(head):
		return rewrite.JSON(w, from, texts)
	case !bytes.ContainsRune(head, 0) && !bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) && printable(head):
		return rewrite.Lines(w, from, texts)
	}
	return &snapshot.FormatError{Offset: -1, Err: snapshot.ErrNotSnapshot,
		Msg: "cannot be redacted: it is none of a snapshot, a .snapana file, a dump of counters, and a log"}
}

func isPickle(head []byte) bool {
	return len(head) > 1 && head[0] == 0x80 && head[1] <= 5 || protocol0.Match(head)
}

// printable reports whether hardly a byte of a beginning is a control character.
func printable(head []byte) bool {
	odd := 0
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\b' && c != '\f' || c == 0x7f {
			odd++
		}
	}
	return odd*50 <= len(head)
}
