package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
)

// Bounds of an answer in bytes, as it is sent.
const (
	DefaultBytes = 8 << 10
	leastBytes   = 2 << 10
	mostBytes    = 32 << 10
)

// Bounds of a text in an answer, in bytes.
const (
	longText  = 600 // a sentence
	shortText = 240 // a name, a frame
)

// size is a number of bytes, for programs and in words.
type size struct {
	Bytes int64  `json:"bytes"`
	Human string `json:"human"`
}

func sized[N ~int64](n N) size { return size{int64(n), units.Bytes(int64(n))} }

// known is sized, nil below zero.
func known[N ~int64](n N) *size {
	if n < 0 {
		return nil
	}
	s := sized(n)
	return &s
}

// call is a call that leads on, as it is to be made.
type call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Why       string         `json:"why"`
}

// cut says of a list that not all of it is in the answer.
type cut struct {
	Field string `json:"field"`
	Shown int    `json:"shown"`
	Of    int    `json:"of"`
}

// page is an answer that is put together field by field, the most important first, and takes no more than its bound.
// What has no room is left out and named: an answer is never cut inside of a value.
type page struct {
	fields [][]byte // "name":value
	left   int      // bytes that are still to be had
	cuts   []cut
}

// frame is what an answer takes around its fields, and what names the fields that come last, as it is sent.
const frame = 220

// perCut is what it takes to say that a list is cut, beside the name of its field.
const perCut = 80

func newPage(most int) *page { return &page{left: most - frame} }

// cost is what a part of the answer takes: it is sent as text inside of JSON, in which quotes and some signs take more.
func cost(part []byte) int {
	text, _ := json.Marshal(string(part)) // of a string it never fails
	return len(text) - 2
}

// plain is a value as JSON, without what could hide something from who reads it.
func plain(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// set adds a field, if there is room for it.
func (p *page) set(name string, v any) bool {
	part := append(append(plain(name), ':'), plain(v)...)
	n := cost(part) + 1
	if n > p.left {
		p.cuts = append(p.cuts, cut{name, 0, 1})
		p.left -= perCut + len(name)
		return false
	}
	p.fields = append(p.fields, part)
	p.left -= n
	return true
}

// text adds a sentence, nothing for "".
func (p *page) text(name, text string) {
	if text != "" {
		p.set(name, clip(text, longText))
	}
}

// list adds as many of n items as there is room for in a share of what is left, in percent, and returns how many. No
// field is made of an empty list.
func (p *page) list(name string, n, share int, item func(i int) any) (shown int) {
	if n == 0 {
		return 0
	}
	room := (p.left - perCut - 2*len(name) - 12) * share / 100
	part := append(plain(name), ":["...)
	for ; shown < n; shown++ {
		one := plain(item(shown))
		c := cost(one) + 1
		if c > room {
			break
		}
		if shown > 0 {
			part = append(part, ',')
		}
		part, room = append(part, one...), room-c
	}
	if shown < n {
		p.cuts = append(p.cuts, cut{name, shown, n})
		p.left -= perCut + len(name)
	}
	if shown > 0 {
		part = append(part, ']')
		p.fields = append(p.fields, part)
		p.left -= cost(part) + 1
	}
	return shown
}

// texts is list for sentences.
func (p *page) texts(name string, list []string, share int) {
	p.list(name, len(list), share, func(i int) any { return clip(list[i], longText) })
}

// sealed is the answer.
func (p *page) sealed() []byte {
	if len(p.cuts) > 0 {
		p.fields = append(p.fields, append([]byte(`"left_out":`), plain(p.cuts)...))
	}
	return append(append([]byte("{"), bytes.Join(p.fields, []byte(","))...), '}')
}

// answered is the result of a call.
func answered(text []byte) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}
}

// failed is the result of a call that failed.
func failed(err error) *sdk.CallToolResult {
	f := failure.Of(err)
	f.Message, f.Hint, f.File = clip(f.Message, longText), clip(f.Hint, shortText), clip(f.File, shortText)
	out := answered(plain(map[string]any{"error": f}))
	out.IsError = true
	return out
}

// clip makes a text of a snapshot fit for an answer: without what drives a terminal or changes the direction of writing,
// and of at most so many bytes, as they are sent. How much is missing is told.
func clip(s string, most int) string {
	dirty := func(r rune) bool {
		return r == utf8.RuneError || r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r)
	}
	if strings.IndexFunc(s, dirty) >= 0 {
		s = strings.Map(func(r rune) rune {
			if dirty(r) {
				return '\ufffd'
			}
			return r
		}, s)
	}
	if len(s) <= most && cost([]byte(s)) <= 2*most {
		return s
	}
	const note = 40
	room, end := most-note, 0
	for i, r := range s {
		n := utf8.RuneLen(r)
		if r == '<' || r == '>' || r == '&' || r == '"' || r == '\\' {
			n = 6
		}
		if room < n {
			break
		}
		room, end = room-n, i+utf8.RuneLen(r)
	}
	return fmt.Sprintf("%s... (%s more)", s[:end], units.Bytes(int64(len(s)-end)))
}

// clean is a value for an answer, its texts clipped.
func clean(v any) any {
	var out any
	d := json.NewDecoder(bytes.NewReader(plain(v)))
	d.UseNumber()
	if d.Decode(&out) != nil {
		return nil
	}
	return cleaned(out)
}

func cleaned(v any) any {
	switch v := v.(type) {
	case string:
		return clip(v, shortText)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = cleaned(v[k])
		}
	}
	return v
}
