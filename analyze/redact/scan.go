package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"html"
	"io"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Scanner searches outputs for words that were replaced.
type Scanner struct {
	words map[string][]sought // by their longest run of letters and digits
}

// sought is a word with where in it that run is.
type sought struct {
	Pair
	at int
}

// shortest is the length of words, in bytes, that are found wherever they stand: shorter ones are in any data by chance,
// and are looked for as parts of paths only.
const shortest = 5

// Scanner looks for all words that were replaced so far. Those are left out that outputs may have: public ones, and those
// that are also parts of names that were kept.
func (r *Redactor) Scanner() *Scanner {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := map[string]bool{}
	for name := range r.kept {
		for _, run := range runs(name) {
			kept[run], kept[strings.Trim(run, "_")] = true, true // torch/_dynamo has "dynamo", too
		}
	}
	var private []Pair
	for p, was := range r.was {
		if slices.ContainsFunc(runs(was), func(run string) bool {
			return !kept[run] && !isPublic(run) && strings.Trim(run, "0123456789") != "" && !folders()[strings.ToLower(run)]
		}) {
			private = append(private, Pair{p, was})
		}
	}
	return NewScanner(private)
}

// NewScanner looks for words, each with a letter or digit in it.
func NewScanner(words []Pair) *Scanner {
	s := &Scanner{words: map[string][]sought{}}
	for _, p := range words {
		longest := ""
		for _, run := range runs(p.Word) {
			if len(run) > len(longest) {
				longest = run
			}
		}
		s.words[longest] = append(s.words[longest], sought{p, strings.Index(p.Word, longest)})
	}
	return s
}

func isRun(c rune) bool {
	return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
}

func runs(s string) []string { return strings.FieldsFunc(s, func(c rune) bool { return !isRun(c) }) }

// window is what is searched at once, with so much of what is before it as a word can take.
const (
	window  = 4 << 20
	overlap = 64 << 10
)

// Scan searches what r gives, byte by byte.
func (s *Scanner) Scan(r io.Reader) (found []Pair, err error) {
	seen := map[string]bool{}
	buf := make([]byte, 0, window+overlap)
	for {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		s.plain(buf, func(p Pair) {
			if !seen[p.Pseudonym] {
				seen[p.Pseudonym] = true
				found = append(found, p)
			}
		})
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return found, nil
		} else if err != nil {
			return found, err
		}
		buf = append(buf[:0], buf[max(0, len(buf)-overlap):]...)
	}
}

// wordByte are the bytes of runs; of those above ASCII all are, which is nearly right.
func wordByte(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func (s *Scanner) plain(data []byte, found func(Pair)) {
	for i := 0; i < len(data); {
		if !wordByte(data[i]) {
			i++
			continue
		}
		start := i
		for i < len(data) && wordByte(data[i]) {
			i++
		}
		s.run(data, start, i, found)
		// In a pickle an opcode or a length may stand right before a text, and in it a pseudonym before a word.
		for k := start + 1; k < min(i, start+3); k++ {
			s.run(data, k, i, found)
		}
	}
}

func (s *Scanner) run(data []byte, start, end int, found func(Pair)) {
	for _, w := range s.words[string(data[start:end])] {
		from := start - w.at
		to := from + len(w.Word)
		if from < 0 || to > len(data) || string(data[from:to]) != w.Word {
			continue
		}
		if len(w.Word) < shortest && !(from > 0 && isSlash(data[from-1]) && to < len(data) && isSlash(data[to]) &&
			inText(data, from, to)) {
			continue
		}
		found(w.Pair)
	}
}

// inText reports whether what is around is text, as it is not in numbers that were packed, nor in base64.
func inText(data []byte, from, to int) bool {
	for _, c := range data[max(0, from-8):min(len(data), to+8)] {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	for _, c := range data[max(0, from-100):min(len(data), to+100)] {
		if !wordByte(c) && c != '/' && c != '+' {
			return true
		}
	}
	return len(data) < 100
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

var escaped = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// codedLeast is how long base64 is to be looked into.
const codedLeast = 64

// coded are the runs of letters, digits and two others that may be base64.
func coded(data []byte, others string) iter.Seq[[]byte] {
	var in [256]bool
	for c := range 128 {
		in[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte(others, byte(c)) >= 0
	}
	return func(yield func([]byte) bool) {
		for i := 0; i < len(data); i++ {
			start := i
			for i < len(data) && in[data[i]] {
				i++
			}
			if i-start >= codedLeast && !yield(data[start:i]) {
				return
			}
		}
	}
}

// Deep searches an output, and what is packed or encoded in it: gzip, zlib, zstd and base64 wherever they begin, and the
// escapes of JSON, HTML and URLs.
func (s *Scanner) Deep(data []byte) []Pair {
	seen := map[string]Pair{}
	s.deep(data, 0, func(p Pair) { seen[p.Pseudonym] = p })
	out := []Pair{}
	for _, p := range seen {
		out = append(out, p)
	}
	return out
}

func (s *Scanner) deep(data []byte, depth int, found func(Pair)) {
	s.plain(data, found)
	if depth == 4 {
		return
	}
	if escaped.Match(data) {
		s.plain(escaped.ReplaceAllFunc(data, func(e []byte) []byte {
			var c rune
			for _, d := range bytes.ToLower(e[2:]) {
				c = c<<4 | rune(strings.IndexByte("0123456789abcdef", d))
			}
			return utf8.AppendRune(nil, c)
		}), found)
	}
	if bytes.IndexByte(data, '&') >= 0 && utf8.Valid(data) {
		s.plain([]byte(html.UnescapeString(string(data))), found)
	}
	if bytes.IndexByte(data, '%') >= 0 && utf8.Valid(data) {
		s.plain([]byte(percent.ReplaceAllStringFunc(string(data), func(p string) string {
			if plain, err := url.PathUnescape(p); err == nil {
				return plain
			}
			return p
		})), found)
	}
	for m := range coded(data, "+/") {
		if plain, err := base64.StdEncoding.DecodeString(string(m[:len(m)/4*4])); err == nil {
			s.deep(plain, depth+1, found)
		}
	}
	for m := range coded(data, "-_") {
		if bytes.ContainsAny(m, "-_") {
			if plain, err := base64.RawURLEncoding.DecodeString(string(m[:len(m)/4*4])); err == nil {
				s.deep(plain, depth+1, found)
			}
		}
	}
	for _, packed := range []struct {
		magic string
		open  func(io.Reader) (io.Reader, error)
	}{
		{"\x1f\x8b\x08", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
		{"\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) }},
		{"\x78\x9c", func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
		{"\x78\xda", func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
		{"\x78\x01", func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
		{"\x78\x5e", func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
	} {
		for rest := data; ; rest = rest[1:] {
			i := bytes.Index(rest, []byte(packed.magic))
			if i < 0 {
				break
			}
			rest = rest[i:]
			r, err := packed.open(bytes.NewReader(rest))
			if err != nil {
				continue
			}
			plain, _ := io.ReadAll(io.LimitReader(r, 256<<20)) // what came before a fault
			if len(plain) > 0 {
				s.deep(plain, depth+1, found)
			}
		}
	}
}

var percent = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)
