package attribution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Kind is what live blocks are grouped by: a word of kinds, and behind a dot the key of a label that has keys.
type Kind string

const (
	ByStack      Kind = "stack"      // the whole stack
	BySite       Kind = "site"       // the user's own frame in it, see Site
	ByFile       Kind = "file"       // the site's file
	ByFunction   Kind = "function"   // the site's file and function
	ByModule     Kind = "module"     // the nn.Module calls that the stack lies in
	ByCategory   Kind = "category"   // what the caller's function says
	ByStream     Kind = "stream"     // the segment's stream
	ByPool       Kind = "pool"       // the segment's memory pool, and whether it serves small requests
	ByBlock      Kind = "block"      // each block alone
	ByCompile    Kind = "compile"    // the region of torch.compile that allocated
	ByMetadata   Kind = "metadata"   // what _set_memory_metadata said then, or the value of a key of it
	ByAnnotation Kind = "annotation" // what _annotate_tensor last said of the block, or the value of a key of it
)

// Kinds lists them in the order of help texts.
func Kinds() []Kind {
	return []Kind{ByStack, BySite, ByFile, ByFunction, ByModule, ByCategory, ByStream, ByPool, ByBlock, ByCompile,
		ByMetadata, ByAnnotation}
}

// KindWords lists them in words, for help.
func KindWords() string {
	words := strings.Trim(strings.ReplaceAll(fmt.Sprint(Kinds()), " ", ", "), "[]")
	return words + ", or a key of a label such as metadata.KEY"
}

// Split gives the word of a kind and the key of its label, empty for the whole label.
func (k Kind) Split() (word Kind, key string) {
	w, key, _ := strings.Cut(string(k), ".")
	return Kind(w), key
}

// Known reports whether it is a kind, whatever the file has.
func (k Kind) Known() bool {
	word, key := k.Split()
	keyed := word == ByMetadata || word == ByAnnotation
	return slices.Contains(Kinds(), word) && (word == k || keyed && key != "")
}

// label reports whether it is what torch or the program noted beside an allocation.
func (k Kind) label() bool {
	word, _ := k.Split()
	return word == ByCompile || word == ByMetadata || word == ByAnnotation
}

// NoKeyError says that no label has the key that blocks are to be grouped by.
type NoKeyError struct {
	Kind  Kind
	Known []string // the keys that exist
}

func (e *NoKeyError) Error() string {
	word, key := e.Kind.Split()
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s in the file has keys; only JSON objects and dicts have any", word)
	}
	const most = 20
	list := strings.Join(e.Known[:min(len(e.Known), most)], ", ")
	if n := len(e.Known) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("no %s in the file has the key %q; choose from %s", word, key, list)
}

// Check gives a *NoKeyError when a kind asks for a key that no label of the device has.
func (k Kind) Check(s *snapshot.Snapshot, t *timeline.Timeline) error {
	word, key := k.Split()
	if key == "" {
		return nil
	}
	texts := newLabels(s, k)
	var known []string
	seen := map[snapshot.LabelID]bool{}
	wanted := snapshot.Alloc
	if word == ByAnnotation {
		wanted = snapshot.Annotate
	}
	for i := range t.Trace.Len() {
		if t.Trace.Action(i) != wanted {
			continue
		}
		if label := t.Trace.At(i).Label; !seen[label] {
			seen[label] = true
			known = texts.keys(known, s.Labels.Get(label).UserMetadata)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if slices.Contains(known, key) {
		return nil
	}
	return &NoKeyError{k, known}
}
