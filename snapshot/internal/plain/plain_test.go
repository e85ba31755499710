package plain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/snapana/snapana/snapshot"
)

// words writes a value in one line.
func words(v *Value) string {
	var parts []string
	switch v.Kind {
	case Nil:
		return "nil"
	case Bool:
		return fmt.Sprint(v.Int == 1)
	case Int:
		return fmt.Sprint(v.Int)
	case Float:
		return fmt.Sprintf("%gf", v.Float)
	case String:
		return fmt.Sprintf("%q", v.Str)
	case List:
		for i := range v.Items {
			parts = append(parts, words(&v.Items[i]))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	for i := range v.Items {
		parts = append(parts, v.Keys[i]+":"+words(&v.Items[i]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// sequence reads all values, and the first error as a last word.
func sequence(next func() (Value, error)) string {
	var out []string
	for {
		v, err := next()
		if err == io.EOF {
			return strings.Join(out, " ")
		}
		if err != nil {
			return strings.TrimSpace(strings.Join(out, " ") + " !" + err.Error())
		}
		out = append(out, words(&v))
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1, "b": [true, null, -2.5e3]}`:           `{a:1 b:[true nil -2500f]}`,
		`{'a': (1, 2), 'b': None, 'c': inf, 'd': nan,}`: `{a:[1 2] b:nil c:+Inff d:NaNf}`,
		`OrderedDict([('a', 1), ((0, 1), 2)]) {}`:       `{a:1 0_1:2} {}`,
		`OrderedDict({'a': 1}), OrderedDict()`:          `{a:1} {}`,
		`[1, [2], {"x": 3}]`:                            `1 [2] {x:3}`,
		`"A\u00e9\ud83d\ude00\n\"\x41"`:                 `"Aé😀\n\"A"`,
		`{"a": 9223372036854775807}`:                    `{a:9223372036854775807}`,
		`{"a": 18446744073709551615, "b": -Infinity}`:   `{a:1.8446744073709552e+19f b:-Inff}`,
		"{\"a\": 1}\n\n{\"a\": 2}\n":                    `{a:1} {a:2}`,
		"{\"a\":\n 1}\n{\"a\":\n 2}\n":                  `{a:1} {a:2}`,
		`{"a" 1}`:                                       `!at byte 5: a colon is missing after the key "a"`,
		`{"a": 1 "b": 2}`:                               `!at byte 8: '"' where a comma or '}' should be`,
		`{"a": os.system("x")}`:                         `!at byte 15: "os.system" is not a value`,
		`[1, 2`: `1 2 !at byte 5: the text ends in the middle of a value: ` +
			`it was cut off or is still being written`,
		`{[]: 1}`: `!at byte 3: the key of a dict is a list`,
	} {
		for name, r := range map[string]io.Reader{"": strings.NewReader(in),
			" byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
			if got := sequence(NewText(r).Next); got != want {
				t.Errorf("%s%s\n gives %s\n  want %s", in, name, got, want)
			}
		}
	}
}

// TestLimits checks that what is too deep, too long or too much is refused.
func TestLimits(t *testing.T) {
	for name, in := range map[string]string{
		"depth":  strings.Repeat("[", 100),
		"text":   `{"a": "` + strings.Repeat("x", maxText+1) + `"}`,
		"values": "[[" + strings.Repeat("0,", maxNodes+1),
	} {
		_, err := NewText(strings.NewReader(in)).Next()
		if !errors.Is(err, snapshot.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, in := range map[string]string{
		"depth":  strings.Repeat("\x91", 100),
		"text":   "\xdb\xff\xff\xff\xff",
		"values": "\xdd\xff\xff\xff\xff" + strings.Repeat("\xc0", maxNodes+1),
	} {
		_, err := NewMsgpack(strings.NewReader(in)).Next()
		if !errors.Is(err, snapshot.ErrLimit) {
			t.Errorf("msgpack %s: %v", name, err)
		}
	}
}

// TestReadError checks that a failing reader is not taken for the end of the data.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, in := range []string{`{"a": 1}`, `{"a": `, ""} {
		if got := sequence(NewText(io.MultiReader(strings.NewReader(in),
			iotest.ErrReader(broken))).Next); !strings.HasSuffix(got, "!broken") {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestMsgpack(t *testing.T) {
	in := "\x82\xa1a\x01\x02\x93\xc0\xc3\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00" + "\xcf\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\xd6\xff\x00\x00\x00\x00" + "\xc4\x02hi" + "\xd0\xff"
	const want = `{a:1 2:[nil true 1.5f]} 1.8446744073709552e+19f nil "hi" -1`
	if got := sequence(NewMsgpack(strings.NewReader(in)).Next); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{`{"a": [1, 2.5, "x\u0041"], "b": {"c": null}}`, "{\"a\": 1}\n{\"a\": 2}\n",
		"OrderedDict([('a', 1)])", `[{'a': (1,)}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := sequence(NewText(bytes.NewReader(data)).Next)
		if parts := sequence(NewText(iotest.OneByteReader(bytes.NewReader(data))).Next); parts != whole {
			t.Errorf("byte by byte %s, else %s", parts, whole)
		}
	})
}

func FuzzMsgpack(f *testing.F) {
	f.Add([]byte("\x82\xa1a\x01\x02\x93\xc0\xc3\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := NewMsgpack(bytes.NewReader(data))
		for last := int64(0); ; last = m.Offset() {
			v, err := m.Next()
			if err != nil {
				return
			}
			if m.Offset() <= last || m.Offset() > int64(len(data)) || len(v.Keys) > len(v.Items) {
				t.Fatalf("%+v from %d to %d", v, last, m.Offset())
			}
		}
	})
}
