package attribution

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// NoRegion is what torch writes as compile_context outside of compiled regions, also when it does not record
// them (torch 2.8, torch/csrc/cuda/memory_snapshot.cpp).
const NoRegion = "N/A"

// labels reads what blocks are grouped by of their labels.
type labels struct {
	s       *snapshot.Snapshot
	word    Kind
	key     string
	objects map[snapshot.StringID]map[string]any // nil for what is no object
}

func newLabels(s *snapshot.Snapshot, by Kind) *labels {
	word, key := by.Split()
	return &labels{s: s, word: word, key: key, objects: map[snapshot.StringID]map[string]any{}}
}

// place is the group of a block by the label that it was born with and what it was last annotated as. born is
// false for a pre-trace block, of whose birth nothing is known.
func (l *labels) place(label snapshot.LabelID, note snapshot.StringID, born bool) place {
	text := note
	switch l.word {
	case ByCompile:
		text = l.s.Labels.Get(label).CompileContext
	case ByMetadata:
		text = l.s.Labels.Get(label).UserMetadata
	}
	value, ok := l.value(text)
	switch {
	case ok:
		return place{key: value, name: value, long: value, known: true}
	case !born && l.word != ByAnnotation:
		return named("(before the trace, not recorded)", false)
	case l.key != "":
		return named("(without "+string(l.word)+"."+l.key+")", false)
	case l.word == ByCompile:
		return named("(in no compiled region)", false)
	}
	return named("(without "+string(l.word)+")", false)
}

// value is what a text has for the key, or the text itself without a key; false for none.
func (l *labels) value(text snapshot.StringID) (string, bool) {
	if l.key == "" {
		s := l.s.Strings.Get(text)
		return s, s != "" && !(l.word == ByCompile && s == NoRegion)
	}
	v, ok := lookUp(l.object(text), l.key)
	if !ok {
		return "", false
	}
	return valueText(v), true
}

// object reads a text as a JSON object: a program gives text, and of a dict torch makes such text (2.15).
func (l *labels) object(text snapshot.StringID) map[string]any {
	if o, ok := l.objects[text]; ok {
		return o
	}
	var o map[string]any
	if s := strings.TrimSpace(l.s.Strings.Get(text)); strings.HasPrefix(s, "{") {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber() // digits as they are
		if d.Decode(&o) != nil || d.More() {
			o = nil
		}
	}
	l.objects[text] = o
	return o
}

// lookUp finds a key, also one of an object within, behind a dot.
func lookUp(o map[string]any, key string) (any, bool) {
	if v, ok := o[key]; ok {
		return v, true
	}
	for at := range len(key) {
		if key[at] != '.' {
			continue
		}
		if inner, ok := o[key[:at]].(map[string]any); ok {
			if v, ok := lookUp(inner, key[at+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// mostLevels is how deep keys are offered: their names are as long as objects are deep.
const mostLevels = 8

// keys adds the keys of a text, those of objects within too.
func (l *labels) keys(to []string, text snapshot.StringID) []string {
	type level struct {
		before string
		of     map[string]any
	}
	for todo := []level{{"", l.object(text)}}; len(todo) > 0; todo = todo[1:] {
		for k, v := range todo[0].of {
			to = append(to, todo[0].before+k)
			if inner, ok := v.(map[string]any); ok && strings.Count(todo[0].before, ".") < mostLevels {
				todo = append(todo, level{todo[0].before + k + ".", inner})
			}
		}
	}
	return to
}

func valueText(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}

// Annotation is a text that the program put on a block (torch.cuda.memory._annotate_tensor, torch 2.14).
type Annotation struct {
	Event int
	Row   int32 // of Timeline.Lives, -1 when no block lived there
	Text  snapshot.StringID
}

// Annotations lists those of a device, by event.
func Annotations(s *snapshot.Snapshot, t *timeline.Timeline) []Annotation {
	if s.Labels.Len() == 0 {
		return nil
	}
	var out []Annotation
	waiting := map[uint64][]int{} // by the base of the block, which torch writes whatever part the tensor is
	for i := t.Trace.Next(1<<snapshot.Annotate, 0); i < t.Trace.Len(); i = t.Trace.Next(1<<snapshot.Annotate, i+1) {
		e := t.Trace.At(i)
		waiting[e.Addr] = append(waiting[e.Addr], len(out))
		out = append(out, Annotation{i, -1, s.Labels.Get(e.Label).UserMetadata})
	}
	if len(out) == 0 {
		return nil
	}
	for row := range t.Lives {
		l := &t.Lives[row]
		here := waiting[l.Addr]
		first := sort.Search(len(here), func(i int) bool { return out[here[i]].Event >= int(l.Born) })
		for _, k := range here[first:] {
			if !l.LiveAfter(out[k].Event) {
				break
			}
			out[k].Row = int32(row)
		}
	}
	return out
}

// notesAt gives what blocks were last annotated as, up to an event, by row of Lives.
func notesAt(s *snapshot.Snapshot, t *timeline.Timeline, event int) map[int32]snapshot.StringID {
	var out map[int32]snapshot.StringID
	for _, a := range Annotations(s, t) {
		if a.Row >= 0 && a.Event <= event && a.Text != 0 {
			if out == nil {
				out = map[int32]snapshot.StringID{}
			}
			out[a.Row] = a.Text
		}
	}
	return out
}
