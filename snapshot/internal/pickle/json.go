package pickle

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// DecodeJSON reads the same schema from JSON text, by driving the machine as a pickle would.
// Integers are read as integers, never through floating point.
func DecodeJSON(r io.Reader, opt Options) (*snapshot.Snapshot, Info, error) {
	d := newMachine(opt)
	d.form = "is JSON"
	counted := &countingReader{r: r, opt: opt}
	dec := json.NewDecoder(counted)
	dec.UseNumber()
	err := d.readJSON(dec, counted)
	info := Info{Bytes: dec.InputOffset()}
	if err != nil {
		if counted.err != nil {
			return nil, info, counted.err
		}
		fe := placed(err, info.Bytes, "JSON")
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			fe.Err, fe.Msg, fe.Op = snapshot.ErrTruncated, "the file ends here, in the middle of the JSON text", ""
		case errors.As(err, &syntax):
			fe.Err, fe.Offset = snapshot.ErrCorrupt, syntax.Offset
		case fe.Err == err:
			fe.Err = snapshot.ErrCorrupt
		}
		err = fe
	}
	d.drain()
	s, err := d.result(err)
	info.Lists = d.numbers
	return s, info, err
}

// countingReader counts what was read, and keeps an error that is not the end of the input.
type countingReader struct {
	r   io.Reader
	opt Options
	n   int64
	err error
}

// Read fills p as far as it can: the decoder looks through a run of blanks again after each read.
func (c *countingReader) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = c.r.Read(p[n:])
		n += more
	}
	if c.opt.Progress != nil && (c.n+int64(n))>>20 != c.n>>20 {
		c.opt.Progress(c.n + int64(n))
	}
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.err = err
	}
	return n, err
}

// readJSON feeds one JSON value to the machine.
func (d *machine) readJSON(dec *json.Decoder, in *countingReader) error {
	for {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		if d.read = in.n; dec.InputOffset()&(1<<16-1) < 64 {
			if err := d.checkMemory(); err != nil {
				return err
			}
			d.drain()
		}
		switch t := tok.(type) {
		case json.Delim:
			err = d.jsonDelim(t)
		case string:
			err = d.push(value{u: uint64(d.intern([]byte(t))), kind: kStr})
		case json.Number:
			err = d.jsonNumber(t)
		case bool:
			v := value{kind: kBool}
			if t {
				v.u = 1
			}
			err = d.push(v)
		case nil:
			err = d.push(value{kind: kNone})
		}
		if err != nil {
			return err
		}
		if len(d.marks) == 0 {
			return nil
		}
	}
}

func (d *machine) jsonDelim(t json.Delim) error {
	if t == '{' || t == '[' {
		v := value{kind: kEmptyDict}
		if t == '[' {
			v.kind = kEmptyList
		}
		if err := d.push(v); err != nil {
			return err
		}
		return d.mark()
	}
	from, err := d.popMark()
	if err != nil {
		return err
	}
	if t == '}' {
		return d.setItems(from, true)
	}
	return d.appends(from)
}

func (d *machine) jsonNumber(n json.Number) error {
	if !strings.ContainsAny(n.String(), ".eE") {
		return d.pushDecimal([]byte(n))
	}
	f, err := n.Float64()
	if err != nil {
		return corrupt("a number out of range: %.20s", n.String())
	}
	return d.push(value{u: math.Float64bits(f), kind: kFloat})
}
