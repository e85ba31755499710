package rewrite

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// level is an object or a list that JSON is inside of.
type level struct {
	Place  // of the entry that it is, as Place says of containers
	object bool
	value  bool   // what comes next in an object is a value
	key    string // its key
	file   string // of a frame
	filed  bool
}

// jsoner rewrites JSON.
type jsoner struct {
	*from
	sink
	texts  *Texts
	levels []level
}

// JSON rewrites JSON texts, of which any number may follow each other.
func JSON(w io.Writer, r io.Reader, texts *Texts) error {
	j := &jsoner{from: newFrom(r), sink: sink{w: w}, texts: texts}
	for {
		done, err := j.step()
		if err == nil && !done && len(j.out) < flushAt {
			continue
		}
		if done || err != nil {
			j.settle()
		}
		if failed := j.flush(done || err != nil); failed != nil {
			return failed
		}
		if done || err != nil {
			return err
		}
	}
}

func (j *jsoner) step() (done bool, err error) {
	c, err := j.byte()
	if errors.Is(err, io.EOF) {
		if len(j.levels) > 0 {
			return false, io.ErrUnexpectedEOF
		}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	top := &level{}
	if len(j.levels) > 0 {
		top = &j.levels[len(j.levels)-1]
	}
	switch c {
	case '"':
		return false, j.text(top)
	case '{', '[':
		if len(j.levels) >= mostDepth {
			return false, j.fault(snapshot.ErrLimit, "is nested too deep")
		}
		in := top.Place
		if top.object {
			in = Place{Key: top.key, Above: top.Key}
		}
		j.out = append(j.out, c)
		j.levels = append(j.levels, level{Place: in, object: c == '{'})
	case '}', ']':
		if len(j.levels) == 0 || top.object != (c == '}') {
			return false, j.fault(snapshot.ErrCorrupt, "closes what is not open")
		}
		if j.hole && j.owner == len(j.levels) {
			j.close("")
		}
		j.out = append(j.out, c)
		j.levels = j.levels[:len(j.levels)-1]
	case ':':
		top.value = true
		j.out = append(j.out, c)
	case ',':
		top.value = false
		j.out = append(j.out, c)
	case ' ', '\t', '\n', '\r', '-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 0xef, 0xbb, 0xbf:
		j.out = append(j.out, c)
	default:
		return false, j.word(c)
	}
	return false, nil
}

// word copies one of the few words of JSON, and what is in numbers.
func (j *jsoner) word(c byte) error {
	j.settle()
	word := []byte{c}
	for {
		next, err := j.r.Peek(1)
		if err != nil || (next[0]|0x20 < 'a' || next[0]|0x20 > 'z') {
			break
		}
		word = append(word, next[0])
		if j.r.Discard(1); len(word) > len("-Infinity") {
			break
		}
		j.off++
	}
	switch string(word) {
	case "true", "false", "null", "NaN", "Infinity", "e", "E":
		j.out = append(j.out, word...)
		return nil
	}
	return j.fault(snapshot.ErrCorrupt, "is no JSON here")
}

// text rewrites a text.
func (j *jsoner) text(top *level) error {
	j.settle()
	raw := append([]byte{}, '"')
	for {
		piece, err := j.r.ReadSlice('"')
		raw = append(raw, piece...)
		j.off += int64(len(piece))
		if len(raw) > mostText {
			return j.fault(snapshot.ErrLimit, "has a text of more than %d bytes", mostText)
		}
		if err != nil && len(piece) == 0 || errors.Is(err, io.EOF) {
			return j.cut(err)
		}
		if err == nil && ends(raw) {
			break
		}
	}
	var was string
	if json.Unmarshal(raw, &was) != nil && json.Unmarshal([]byte(control.Replace(string(raw))), &was) != nil {
		return j.fault(snapshot.ErrCorrupt, "has a text that is none of JSON")
	}
	if top.object && !top.value {
		top.key = was
		j.quote(j.texts.Text(Place{Above: top.Key, IsKey: true}, was))
		return nil
	}
	at := top.Place
	if top.object {
		at = Place{Key: top.key, Above: top.Key}
	}
	depth := len(j.levels)
	switch {
	case isName(at) && top.filed:
		j.quote(j.texts.Name(was, top.file))
	case isName(at):
		j.leave(depth, func(file string) []byte { return quoted(j.texts.Name(was, file)) })
	case isFile(at):
		top.file, top.filed = was, true
		if j.hole && j.owner == depth {
			j.close(was)
		}
		fallthrough
	default:
		j.quote(j.texts.Text(at, was))
	}
	return nil
}

// control are characters that some writers leave as they are.
var control = strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`)

// ends reports whether the last quote of a text is not escaped.
func ends(raw []byte) bool {
	n := 0
	for i := len(raw) - 2; i > 0 && raw[i] == '\\'; i-- {
		n++
	}
	return n%2 == 0
}

func (j *jsoner) quote(now string) { j.out = append(j.out, quoted(now)...) }

func quoted(now string) []byte {
	b, _ := json.Marshal(now) // a text always can be
	return b
}
