// Package redact takes out of what is read who it was that ran the program, and where: paths, user and host names,
// arguments, addresses, serial numbers, and what the program noted beside its memory. Each becomes a pseudonym, the same
// for the same, so that stacks stay as many and as deep; sizes and numbers stay as they are.
//
// It is done to the bytes of a file before anything reads them (package snapshot/rewrite): what is found afterwards, and
// whatever is printed of it, knows pseudonyms only. That a verdict stays the same is because pseudonyms keep what
// judgments ask for: what package frames knows of a path, the words that package ghost, steps and phase look for in
// names, and what this package lists as public. Its home is here and not in package snapshot since it asks package frames,
// which snapshot does not know.
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/snapana/snapana/snapshot/rewrite"
)

// Kind is what a text was that became a pseudonym.
type Kind string

// The kinds.
const (
	Paths     Kind = "folders and files"
	Functions Kind = "functions and other names in code"
	Scopes    Kind = "annotations and phases"
	Notes     Kind = "user metadata"
	Keys      Kind = "keys"
	Addresses Kind = "network addresses, URLs and ids"
	Words     Kind = "other words"
	Names     Kind = "names of files given"
	Values    Kind = "other texts"
)

// Redactor makes pseudonyms. It is safe for concurrent use.
type Redactor struct {
	strict bool
	key    []byte

	mu     sync.Mutex
	now    map[string]string // pseudonyms
	was    map[string]string // and back
	counts map[Kind]map[string]bool
	ways   [len(waysOf)]map[[2]string]string // what was asked before
	kept   map[string]bool                   // names that stay
	sizes  map[int64]int64                   // of pickles, before and after
}

// waysOf are the things that are kept because they are asked for often.
var waysOf = [...]string{"path", "function", "value", "chunk"}

// mostKept is how many of a kind are kept: a log may never say the same twice.
const mostKept = 1 << 17

// New is a redactor by a salt: who does not know it cannot find out by trying which word a pseudonym stands for. Strict
// also replaces the names of functions, and of packages that are not public.
func New(salt []byte, strict bool) *Redactor {
	r := &Redactor{strict: strict, key: salt, now: map[string]string{}, was: map[string]string{},
		counts: map[Kind]map[string]bool{}, kept: map[string]bool{}, sizes: map[int64]int64{}}
	for i := range r.ways {
		r.ways[i] = map[[2]string]string{}
	}
	return r
}

// Strict reports whether names of functions are replaced too.
func (r *Redactor) Strict() bool { return r.strict }

// Mark is the same for redactors of the same salt. It is the pseudonym of no word.
func (r *Redactor) Mark() string {
	return r.of("")
}

// letters have no vowels, so that no pseudonym has a word in it; the last of one is none of digits.
const (
	letters = "bcdfghjkmnpqrtvwxz23456789"
	last    = "bcdfghjkmnpqrtvwxz"
	long    = 9
)

// pseudonym stands for a word: 9 letters and digits behind an x.
func (r *Redactor) pseudonym(kind Kind, word string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts[kind] == nil {
		r.counts[kind] = map[string]bool{}
	}
	r.counts[kind][word] = true
	if p, ok := r.now[word]; ok {
		return p
	}
	p := r.of(word)
	for again := word; r.was[p] != ""; p = r.of(again) { // no two words have the same
		again += "\x00"
	}
	r.now[word], r.was[p] = p, word
	return p
}

func (r *Redactor) of(word string) string {
	sum := hmac.New(sha256.New, r.key)
	io.WriteString(sum, word)
	h := sum.Sum(nil)
	var b strings.Builder
	b.WriteByte('x')
	for i := range long {
		from := letters
		if i == long-1 {
			from = last
		}
		b.WriteByte(from[(int(h[2*i])<<8|int(h[2*i+1]))%len(from)])
	}
	return b.String()
}

// often is make by two texts, worked out once.
func (r *Redactor) often(way int, a, b string, make func() string) string {
	k := [2]string{a, b}
	r.mu.Lock()
	s, ok := r.ways[way][k]
	r.mu.Unlock()
	if !ok {
		s = make()
		r.mu.Lock()
		if len(r.ways[way]) < mostKept {
			r.ways[way][k] = s
		}
		r.mu.Unlock()
	}
	return s
}

// keep notes a name that stays.
func (r *Redactor) keep(name string) string {
	r.mu.Lock()
	r.kept[name] = true
	r.mu.Unlock()
	return name
}

// Count is how many different words of a kind were replaced.
type Count struct {
	Kind  Kind `json:"kind"`
	Words int  `json:"words"`
}

// Counts lists what was replaced so far, by kind.
func (r *Redactor) Counts() []Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Count{}
	for _, k := range slices.Sorted(maps.Keys(r.counts)) {
		out = append(out, Count{k, len(r.counts[k])})
	}
	return out
}

// Pair is a word with what stands for it.
type Pair struct{ Pseudonym, Word string }

// Table lists all pseudonyms, in their order.
func (r *Redactor) Table() []Pair {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Pair{}
	for _, p := range slices.Sorted(maps.Keys(r.was)) {
		out = append(out, Pair{p, r.was[p]})
	}
	return out
}

// Original puts the words back into a text with pseudonyms: for rules that its owner wrote.
func (r *Redactor) Original(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return made.ReplaceAllStringFunc(text, func(p string) string {
		if was, ok := r.was[strings.ToLower(p)]; ok {
			return was
		}
		return p
	})
}

// Texts says what becomes of the texts of a file.
func (r *Redactor) Texts() *rewrite.Texts {
	return &rewrite.Texts{Text: r.text, Name: r.function, Line: r.line, Size: r.size, Resized: func(was, now int64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sizes[was] = now
	}}
}

// size is how large a snapshot is now: one that was not met before has another size than those that were. Of none that
// was met nothing is known.
func (r *Redactor) size(was int64) (now int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now, ok = r.sizes[was]; !ok {
		now = was
	}
	return now, len(r.sizes) > 0
}
