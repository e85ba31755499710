package redact

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/frames"
)

// function is the name of a function in a file: of code, variables and attributes too, which have no file.
func (r *Redactor) function(name, file string) string {
	if name == "" {
		return name
	}
	name = r.units(name)
	if !r.strict {
		rest := unit[0].ReplaceAllString(name, "")
		if strings.ContainsAny(rest, `/\`) && !division.MatchString(rest) || who().MatchString(name) { // a path, or who or where
			return r.line(name)
		}
		return r.keep(name)
	}
	return r.often(1, name, file, func() string {
		native := file != "" && !frames.Classify(file, name).Has(frames.Python) || strings.Contains(name, "::")
		switch {
		case file != "" && !native && r.ofAll(file), file == r.Path(file) && strings.HasPrefix(file, "<frozen"),
			whole.MatchString(name), entry.MatchString(name), attributes()[name]:
			return r.keep(name)
		case native:
			return r.symbol(name)
		}
		return r.code(name)
	})
}

// ofAll reports whether a file is in a public package, as it is there.
func (r *Redactor) ofAll(file string) bool {
	at, _ := r.known(file)
	return at < len(file) && strings.HasSuffix(r.Path(file), file[at:])
}

// units replaces the names of files in those that compilers make of them: of what one file keeps to itself, of what
// runs before main, and of lambdas.
func (r *Redactor) units(name string) string {
	if !strings.Contains(name, "_GLOBAL__") && !strings.Contains(name, "_INTERNAL_") && !strings.Contains(name, "__nv_") &&
		!strings.Contains(name, " at ") {
		return name
	}
	for _, form := range unit {
		name = replaceGroup(form, name, func(file string) string {
			if strings.HasPrefix(file, "_Z") {
				return file
			}
			return r.Path(file)
		})
	}
	return name
}

// unit are names with a file in them, which is the group. Clang's lambdas, initializers, and nvcc's names, in which hashes
// of the path are around it.
var unit = []*regexp.Regexp{
	regexp.MustCompile(`\((?:lambda|anonymous \w+|unnamed \w+) at ([^()]+?):\d+:\d+\)`),
	regexp.MustCompile(`_GLOBAL__(?:sub_)?[ID]_([\w.+-]+)`),
	regexp.MustCompile(`(?:_GLOBAL__N__|_INTERNAL_|__nv_static_\d+__)([0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}(?:_\d+)?)(?:\b|__|::)`),
}

// replaceGroup replaces the first group of each match.
func replaceGroup(form *regexp.Regexp, text string, by func(string) string) string {
	var b strings.Builder
	end := 0
	for _, m := range form.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[end:m[2]])
		b.WriteString(by(text[m[2]:m[3]]))
		end = m[3]
	}
	b.WriteString(text[end:])
	return b.String()
}

var (
	// division is an operator that looks like a path.
	division   = regexp.MustCompile(`^[^/\\]*\boperator ?/=?[^/\\]*$`)
	identifier = regexp.MustCompile(`[\pL_][\pL\pM\pN_]*`)
	plumbing   = regexp.MustCompile(`^_?_?Py(?:Eval|Object|Function)_`)
	entry      = regexp.MustCompile(`^__libc_start_(?:call_)?main(?:_impl|_alias_\d+)?$`)
	syntax     = map[string]bool{"lambda": true, "locals": true, "listcomp": true, "genexpr": true, "dictcomp": true,
		"setcomp": true, "module": true}
	isHex = regexp.MustCompile(`^0x[0-9a-fA-F]{1,16}$`)
)

// code replaces the words of names in code, but for those that judgments ask for: as many words as there were.
func (r *Redactor) code(name string) string {
	return identifier.ReplaceAllStringFunc(name, func(id string) string {
		switch {
		case special()[id], attributes()[id], syntax[id], made.FindString(id) == id,
			strings.HasPrefix(id, "_saved_") && allOf(id, torchWords()):
			return id
		}
		return r.words(Functions, id, judgedWords(), judgedParts, nil)
	})
}

// words replaces words of letters but for known ones and known parts of them, and beginnings.
func (r *Redactor) words(kind Kind, text string, known map[string]bool, parts, begins []string) string {
	var b strings.Builder
	for _, w := range splitIDs(text, known, parts) {
		lower := strings.ToLower(w)
		switch {
		case made.FindString(w) == w:
			b.WriteString(w)
			continue
		case isID(w):
			b.WriteString(r.pseudonym(kind, w))
			continue
		}
		if !isWord(w) || known[lower] {
			b.WriteString(w)
			continue
		}
		from, to := -1, -1
		for _, part := range parts {
			if i := strings.Index(lower, part); i >= 0 && len(part) > to-from {
				from, to = i, i+len(part)
			}
		}
		for _, begin := range begins {
			if strings.HasPrefix(lower, begin) && len(begin) > to-from {
				from, to = 0, len(begin)
			}
		}
		if len(lower) != len(w) || from < 0 {
			b.WriteString(r.cased(kind, w))
			continue
		}
		if from > 0 {
			b.WriteString(r.cased(kind, w[:from]))
		}
		b.WriteString(w[from:to])
		if to < len(w) {
			b.WriteString(r.pseudonym(kind, w[to:]))
		}
	}
	return b.String()
}

// cased is a pseudonym that begins with a capital letter where the word does: names are cut there.
func (r *Redactor) cased(kind Kind, w string) string {
	p := r.pseudonym(kind, w)
	if first, _ := firstRune(w); unicode.IsUpper(first) {
		return "X" + p[1:]
	}
	return p
}

func firstRune(s string) (rune, bool) {
	for _, c := range s {
		return c, true
	}
	return 0, false
}

func isWord(w string) bool {
	c, ok := firstRune(w)
	return ok && (unicode.IsLetter(c) || unicode.IsMark(c))
}

// split cuts a text into words of letters, at capitals too, and what is between them.
func split(text string) (out []string) {
	start, letter, upper := 0, false, false
	for i, c := range text {
		is := unicode.IsLetter(c) || unicode.IsMark(c)
		if i > start && (is != letter || is && unicode.IsUpper(c) && !upper) {
			out, start = append(out, text[start:i]), i
		}
		letter, upper = is, unicode.IsUpper(c)
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

var qualified = regexp.MustCompile(`~?[\pL_][\pL\pN_]*(?:::~?[\pL_][\pL\pN_]*)*`)

// symbol replaces the names in one of C++ that neither torch nor what it is built on has.
func (r *Redactor) symbol(name string) string {
	var b strings.Builder
	end, kept := 0, false
	for _, m := range qualified.FindAllStringIndex(name, -1) {
		between, id := name[end:m[0]], name[m[0]:m[1]]
		b.WriteString(between)
		end = m[1]
		inside := strings.HasSuffix(between, "::")
		switch {
		case !strings.Contains(id, "::") && (ofC()[id] || isPublic(id)):
			b.WriteString(r.keep(id)) // as much torch's as what is before
		case symbols.MatchString(id), inside && kept, common().MatchString(id) && allOf(id, torchWords(), cWords(), ofC(), public()):
			b.WriteString(r.keep(id))
			kept = true
		case plumbing.MatchString(id): // its beginning tells that nobody wants to see it
			at := len(plumbing.FindString(id))
			b.WriteString(id[:at] + r.words(Functions, id[at:], judgedWords(), judgedParts, nil))
			kept = false
		default:
			kept = false
			for i, part := range strings.Split(id, "::") {
				if i > 0 {
					b.WriteString("::")
				}
				b.WriteString(r.words(Functions, part, judgedWords(), judgedParts, nil))
			}
		}
	}
	b.WriteString(name[end:])
	return b.String()
}

// allOf reports whether all words of a name are in one of some lists.
func allOf(name string, lists ...map[string]bool) bool {
	for _, w := range split(name) {
		if isWord(w) && !slices.ContainsFunc(lists, func(l map[string]bool) bool { return l[strings.ToLower(w)] }) {
			return false
		}
	}
	return !longNumber.MatchString(name)
}

// scope is the name of a scope or a phase: its words, but for those that torch has and that judgments ask for.
func (r *Redactor) scope(name string) string {
	var b strings.Builder
	end := 0
	for _, m := range append(ids().FindAllStringIndex(name, -1), []int{len(name), len(name)}) {
		for _, run := range between.FindAllString(name[end:m[0]], -1) {
			if isID(run) && !scopeParted(run) {
				b.WriteString(r.pseudonym(Scopes, run))
				continue
			}
			for _, w := range lettered.FindAllString(run, -1) {
				if isWord(w) && !scopeWords()[strings.ToLower(w)] {
					w = r.words(Scopes, strings.ToLower(w), scopeWords(), scopeParts, releases)
				}
				b.WriteString(w)
			}
		}
		if end = m[1]; m[0] < end {
			b.WriteString(r.pseudonym(Addresses, name[m[0]:end]))
		}
	}
	return b.String()
}

var (
	between  = regexp.MustCompile(`[\pL\pM\pN]+|[^\pL\pM\pN]+`)
	lettered = regexp.MustCompile(`[\pL\pM]+|[^\pL\pM]+`)
)

// scopeParted reports whether a word of scopes is in letters with digits: "step12batch3".
func scopeParted(run string) bool {
	return slices.ContainsFunc(lettered.FindAllString(run, -1), func(w string) bool {
		w = strings.ToLower(w)
		return len(w) >= 4 && (scopeWords()[w] || slices.ContainsFunc(scopeParts, func(p string) bool { return strings.Contains(w, p) }))
	})
}

// isPublic reports whether all words of a text are public, and whether there is one.
func isPublic(text string) bool {
	any := false
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsMark(c) }) {
		any = true
		if !public()[w] {
			return false
		}
	}
	return any
}

var rankLike = regexp.MustCompile(`^[0-9]{1,7}$`)

// Name is the pseudonym of a file that a user names, without its folder: endings stay, public words, and numbers, since
// they tell one rank from another.
func (r *Redactor) Name(file string) string {
	base := filepath.Base(file)
	if base == "." || base == "/" || base == "-" || base == "stdin" {
		return base
	}
	stem, ends := base, ""
	for {
		ext := filepath.Ext(stem)
		if ext == stem || ext == "" || !endings()[strings.ToLower(ext)] {
			break
		}
		stem, ends = strings.TrimSuffix(stem, ext), ext+ends
	}
	var b strings.Builder
	if m := dumped.FindStringSubmatch(stem); m != nil && !rankLike.MatchString(m[1]) && !numbered.MatchString(m[1]) {
		b.WriteString(r.pseudonym(Names, m[1]) + m[2])
		stem = ""
	}
	end := 0
	for _, m := range append(hosts().FindAllStringIndex(stem, -1), []int{len(stem), len(stem)}) {
		for _, w := range parts.FindAllString(stem[end:m[0]], -1) {
			switch {
			case rankLike.MatchString(w), isPublic(w) && !strings.ContainsAny(w, "0123456789"),
				strings.Trim(w, "_-. ") == "", made.FindString(w) == w:
				b.WriteString(w)
			case numbered.MatchString(w):
				b.WriteString(w)
			default:
				b.WriteString(r.pseudonym(Names, w))
			}
		}
		if end = m[1]; m[0] < end {
			b.WriteString(r.pseudonym(Names, stem[m[0]:end]))
		}
	}
	return b.String() + ends
}

// Given is the pseudonym of the path of a file that a user names.
func (r *Redactor) Given(file string) string {
	dir, base := filepath.Split(file)
	if dir == "" {
		return r.Name(base)
	}
	if strings.Contains(dir, "://") {
		return r.pseudonym(Addresses, dir) + "/" + r.Name(base)
	}
	return r.Path(strings.TrimSuffix(dir, "/")) + "/" + r.Name(base)
}

var (
	parts = regexp.MustCompile(`[\pL\pM\pN]+|[^\pL\pM\pN]+`)
	// dumped is HOST_PID.TIME, as torch.profiler names what it writes.
	dumped = regexp.MustCompile(`^(.+?)((?:_|\.)\d+\.\d{10,})$`)
	// hosts are addresses, and what is named after one; ids of containers.
	hosts = lazily(`(?:[A-Za-z][A-Za-z0-9]*-)*` + dashed + `(?:\.[A-Za-z][A-Za-z0-9-]*)*|` + ip + `|` +
		`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	numbered = regexp.MustCompile(`^(?i:rank|step|epoch|iter|iteration|device|cuda|gpu|stage|tp|pp|dp|local|global)\d{1,7}$`)
)

// Message takes the names that the user gave out of a message.
func (r *Redactor) Message(text string, given []string) string {
	for _, g := range given {
		if g == "-" || g == "" {
			continue
		}
		name := r.Name(g)
		if abs, err := filepath.Abs(g); err == nil {
			text = replaceWhole(text, abs, name)
		}
		text = replaceWhole(text, g, name)
		if _, rest, ok := strings.Cut(g, "://"); ok { // a host may be named after its first part
			for _, part := range strings.Split(rest, "/") {
				if len(part) > 2 {
					text = strings.ReplaceAll(text, part, r.Name(part))
				}
			}
		}
		if base := filepath.Base(g); len(base) > 2 {
			text = replaceWhole(text, base, name)
		}
	}
	return hostname.ReplaceAllStringFunc(text, func(host string) string {
		if endings()[filepath.Ext(host)] || made.MatchString(host) && strings.Count(host, ".") < 3 {
			return host
		}
		return r.pseudonym(Addresses, host)
	})
}

// hostname is one with its domain.
var hostname = regexp.MustCompile(`\b[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\.[a-z]{2,}\b`)

// replaceWhole replaces a name where it is no part of a longer word: a file may be called d.
func replaceWhole(text, old, with string) string {
	var out strings.Builder
	for rest := text; ; {
		at := strings.Index(rest, old)
		if at < 0 {
			out.WriteString(rest)
			return out.String()
		}
		done := text[:len(text)-len(rest)+at]
		out.WriteString(rest[:at])
		rest = rest[at+len(old):]
		before, _ := utf8.DecodeLastRuneInString(done)
		after, _ := utf8.DecodeRuneInString(rest)
		first, _ := utf8.DecodeRuneInString(old)
		last, _ := utf8.DecodeLastRuneInString(old)
		if ofWord(before) && ofWord(first) || ofWord(after) && ofWord(last) {
			out.WriteString(old)
		} else {
			out.WriteString(with)
		}
	}
}

func ofWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
