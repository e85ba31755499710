package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Forms that stay: bus is a slot of a machine, by which tables of GPUs are read; stamp is a time, color one of a terminal.
const (
	bus   = `\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b`
	stamp = `\b\d{4}-\d\d-\d\d[T_]?\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?\b|\b[EWIF]\d{4}\b`
	color = `\x1b\[[0-9;?]*[A-Za-z]`
)

// Forms that go.
const (
	ip      = `\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`
	dashed  = `(?:\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}|ip_\d{1,3}_\d{1,3}_\d{1,3}_\d{1,3})`
	idForms = `[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+` +
		`|\barn:aws[\w-]*:[^\s"'<>()\[\],;]+` +
		`|[^\s"'<>()\[\],;]+@[^\s"'<>()\[\],;]+` +
		`|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
		`|\b(?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2}\b|\b(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}\b` +
		`|\b` + ip + `\b` +
		`|\b(?:[A-Za-z][A-Za-z0-9]*-)*` + dashed + `(?:\.[A-Za-z][\w.-]*)?\b` +
		`|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,}\b|\b[0-9a-fA-F]{2,4}::[0-9a-fA-F]+\b`
)

var (
	// ids tell who or where, wherever they stand: URLs, resources of clouds, mail addresses, UUIDs, addresses of IPv4 and of
	// hosts named after one, of IPv6 and of network cards.
	ids = lazily(idForms)
	// who finds those that may be in the name of a function.
	who = lazily(`[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}|\b` + ip + `\b|\bip[-_]\d{1,3}[-_]\d{1,3}[-_]\d{1,3}[-_]\d|` +
		`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-|(?:\b[0-9a-fA-F]{2}[-:]){5}`)
	// serial is a number that a thing has.
	serial   = lazily(`(?i)\bserial(?:[ _]?(?:number|num|no\.?))?\b["']?\s*[:=]?\s*["']?([A-Za-z0-9][\w-]+)`)
	wordRuns = regexp.MustCompile(`[\pL\pM\pN]+`)
	digits   = regexp.MustCompile(`\d+`)
	hexID    = regexp.MustCompile(`^(?:[0-9a-f]{7,}|[0-9A-F]{7,})$`)
)

// lazily compiles an expression when it is needed first: commands that redact nothing should begin at once.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// isID reports whether letters and digits are mixed as in a hash, a key, or the name of a container, or a number is as
// long as that of a person or a thing.
func isID(w string) bool {
	at := digits.FindAllStringIndex(w, 2)
	switch {
	case len(at) == 0:
		return false
	case strings.Trim(w, "0123456789") == "":
		return len(w) >= 9
	case hexID.MatchString(w), strings.HasPrefix(w, "0x") && hexID.MatchString(w[2:]):
		return true
	}
	return len(w) >= 7 && (len(at) == 2 || at[0][0] > 0 && at[0][1] < len(w))
}

// splitIDs is split, but for ids, which are parts as a whole unless there is a known word in them.
func splitIDs(text string, known map[string]bool, parts []string) (out []string) {
	if !digits.MatchString(text) {
		return split(text)
	}
	end := 0
	for _, m := range wordRuns.FindAllStringIndex(text, -1) {
		run := text[m[0]:m[1]]
		if made.FindString(run) != run && !isID(run) || slices.ContainsFunc(split(run), func(w string) bool {
			w = strings.ToLower(w)
			return len(w) >= 4 && (known[w] || slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(w, p) }))
		}) {
			continue
		}
		out = append(append(out, split(text[end:m[0]])...), run)
		end = m[1]
	}
	return append(out, split(text[end:])...)
}
