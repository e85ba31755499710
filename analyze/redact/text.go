package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/snapana/snapana/snapshot/rewrite"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// text says what becomes of a text at a place.
func (r *Redactor) text(at rewrite.Place, text string) string {
	if text == "" {
		return ""
	}
	if at.IsKey {
		return r.key_(at.Above, text)
	}
	switch at.Key {
	case "filename", "file":
		if at.Above == "snapshot" {
			return r.Name(text)
		}
		return r.Path(text)
	case "name":
		switch at.Above {
		case "external_annotations", "phase":
			return r.scope(text)
		case "numbers", "uses":
			return r.side(text)
		case "devices", "instances":
			return r.tokens(text)
		}
	case "left", "right":
		if at.Above == "uses" {
			return r.side(text)
		}
	case "function", "hint", "attr", "closure", "local", "global", "default", "hook", "saved", "func", "cache",
		"context", "contents":
		if at.Above == "uses" || at.Above == "edges" || at.Above == "bounds" {
			return r.function(text, "")
		}
	case "fx_node_name", "fx_node_target", "fx_node_op":
		return r.function(text, "")
	case "type":
		if at.Above == "nodes" {
			return r.class(text)
		}
	case "error":
		if at.Above == "phase" {
			return r.class(text)
		}
	case "kind", "root", "shape", "dtype", "how":
		if at.Above == "nodes" || at.Above == "edges" || at.Above == "tensors" || at.Above == "storages" || at.Above == "uses" {
			if said()[text] || dtype.MatchString(text) {
				return text
			}
			return r.tokens(text)
		}
	case "reason", "where", "mode":
		if said()[text] {
			return text
		}
	case "what", "notes":
		if at.Above == "fault" || at.Above == "holders" {
			return r.line(text)
		}
	case "forward_frames", "fx_original_trace", "cpp_frames":
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = r.line(lines[i])
		}
		return strings.Join(lines, "\n")
	case "user_metadata", "internal_metadata":
		return r.metadata(text)
	case "program":
		return r.Name(text)
	case "compile_context":
		if strings.Trim(text, "0123456789/_[]-. ") == "" || text == "N/A" {
			return text
		}
		return r.scope(text)
	case "state":
		if len(text) == 1 {
			return text // of a process
		}
		return r.tokens(text)
	case "type_", "stage", "action", "segment_type", "category", "format", "producer":
		return r.tokens(text)
	}
	if at.Above == "env" && (at.Key == "os.distribution" || at.Key == "os.libc" || strings.HasPrefix(at.Key, "python.")) {
		return r.line(text)
	}
	if at.Above == "allocator_settings" || at.Key == "allocator_settings" || strings.HasPrefix(at.Key, "alloc.") {
		return r.tokens(text)
	}
	return r.value(text, isPublic(at.Key) || at.Key == "")
}

// value is any other text: as it is where all its words are public, by parts where it is a path, else as a whole. Numbers
// are kept, and what is like one if it is known what of; of the rest those that are too short to be anybody's.
func (r *Redactor) value(text string, known bool) string {
	of := ""
	if known {
		of = "known"
	}
	return r.often(2, text, of, func() string {
		switch {
		case made.FindString(text) == text, isPlain(text) && (known || isPublic(text) && !longNumber.MatchString(text)),
			smallNumber.MatchString(text), moment.MatchString(text), strings.Trim(text, "() ,0[]") == "":
			return text
		case strings.HasPrefix(text, "/") && !strings.Contains(text, " "):
			return r.Path(text)
		case oom.MatchString(text): // a log may be made of JSON
			lines := strings.Split(text, "\n")
			for i := range lines {
				lines[i] = r.line(lines[i])
			}
			return strings.Join(lines, "\n")
		case strings.HasPrefix(text, "NVIDIA "), strings.HasPrefix(text, "AMD "), strings.HasPrefix(text, "Intel"):
			return r.line(text)
		case versioned.MatchString(text):
			m := versioned.FindStringSubmatch(text)
			if builds.MatchString(m[2]) {
				return text
			}
			return m[1] + "+" + r.pseudonym(Values, m[2])
		case strings.HasPrefix(text, "GPU-"), strings.HasPrefix(text, "MIG-"):
			return text[:4] + r.pseudonym(Addresses, text[4:])
		}
		return r.pseudonym(Values, text)
	})
}

var (
	plainNumber = regexp.MustCompile(`^[-+\d.,:/ eExX_()\[\]]*$`)
	// smallNumber is none of a person, an account or a thing; moment is a time.
	smallNumber = regexp.MustCompile(`^[-+]?\d{0,6}(?:\.\d+)?(?:[eE][-+]?\d{1,3})?$`)
	moment      = regexp.MustCompile(`^(?:\d{4}[-/]\d\d[-/]\d\d)?[ T]?(?:\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?Z?$`)
	// versioned is a version with what its builder put behind it, which builds are the public ones of.
	versioned = regexp.MustCompile(`^(\d+(?:\.\d+){1,3}(?:(?:a|b|rc|\.dev|\.post)\d+)?)(?:\+([\w.-]+))?$`)
	builds    = regexp.MustCompile(`^(?:|cpu|cu\d+|rocm[\d.]+|xpu|cpu\.cxx11\.abi|debian|ubuntu|fedora)$`)
	dtype     = regexp.MustCompile(`^(?:u?int\d+|b?float\d+(?:_e\dm\d\w*)?|complex\d+|bool|q?u?int\d+|bits\w{1,5})$`)
	uuid      = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	// colons are those of addresses of IPv6 and of network cards, which a time has fewer of.
	colons = regexp.MustCompile(`::|(?:\w*:){4}`)
	// variables are the keys that the recorder writes of a process's environment.
	variables = regexp.MustCompile(`^(?:(?:alloc|python|os|host|torch|driver)\.[\w.]+|library\.(\w+)|` +
		`env\.(?:(?:NCCL|MALLOC|TORCH|CUDA|CUBLAS|OMP|MKL)_\w+|PYTHONMALLOC|LD_PRELOAD))$`)
)

// isPlain reports whether a text is public words, or numbers and what stands between them, and has no address.
func isPlain(text string) bool {
	return (isPublic(text) || plainNumber.MatchString(text)) && !address.MatchString(text) && !colons.MatchString(text) &&
		!uuid.MatchString(text)
}

// key_ is a key of a dict that is not of the format.
func (r *Redactor) key_(above, text string) string {
	lower := strings.ToLower(text)
	switch {
	case above == "env" && variables.MatchString(text):
		if m := variables.FindStringSubmatch(text); m[1] == "" || isPackage(m[1]) {
			return r.keep(text)
		}
	case recorded()[text], above == "dropped" && said()[text], isPlain(text) || lower == "n/a":
		return text
	}
	return r.words(Keys, text, public(), nil, nil)
}

// recorded are the keys of .snapana files.
var recorded = sync.OnceValue(sidecar.Keys)

// said are the words of .snapana files (snapshot/sidecar/FORMAT.md): kinds of storages, of nodes and of edges, roots, and
// how a program uses what it keeps, why something was recorded, and what of it had no room.
var said = sync.OnceValue(func() map[string]bool {
	return set(`pinned shared mapped tensor object dict list tuple set deque array cell function method partial lru_cache frame
generator traceback exception class module node cpp interpreter cycle unknown global local closure contents attr index key
element dictkey default self func args cache context hook grad base grad_fn next saved variable cause yield owner other
add read recent size drop make bound fill length set dump exit oom stop step signal gone compute graphics mps env timer
nodes edges graph_nodes`)
})

// side is a name, or what a recording compares: the length of what is called so, of the container itself, or an index.
func (r *Redactor) side(text string) string {
	switch name, ok := strings.CutPrefix(text, "len "); {
	case ok:
		return "len " + r.function(name, "")
	case text == "len", text == "len()", text == "index", text == "None":
		return text
	}
	return r.function(text, "")
}

// class is a class with its module: of the program's own modules only the name of the class stays, unless that must go.
func (r *Redactor) class(text string) string {
	first, _, dotted := strings.Cut(text, ".")
	if dotted && stdlib()[first] || isPackage(first) && first != "__main__" || !dotted && (isPublic(text) || builtin[text]) {
		return r.keep(text)
	}
	parts := strings.Split(text, ".")
	for i := range parts {
		if i < len(parts)-1 && parts[i] != "__main__" && parts[i] != "<locals>" {
			parts[i] = r.pseudonym(Functions, parts[i])
		} else if i == len(parts)-1 {
			parts[i] = r.function(parts[i], "")
		}
	}
	return strings.Join(parts, ".")
}

var builtin = map[string]bool{"dict": true, "list": true, "tuple": true, "set": true, "frozenset": true, "cell": true,
	"function": true, "method": true, "frame": true, "generator": true, "coroutine": true, "traceback": true, "type": true,
	"object": true, "module": true, "RuntimeError": true, "OutOfMemoryError": true, "ValueError": true, "KeyError": true,
	"Exception": true, "KeyboardInterrupt": true, "SystemExit": true, "AssertionError": true, "TypeError": true,
	"builtin_function_or_method": true, "mappingproxy": true, "NoneType": true}

// metadata is what the program noted beside its memory: of a JSON object its form and numbers stay.
func (r *Redactor) metadata(text string) string {
	if s := strings.TrimSpace(text); strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		var b bytes.Buffer
		err := rewrite.JSON(&b, strings.NewReader(text), &rewrite.Texts{
			Text: func(_ rewrite.Place, t string) string { return r.note(t) },
			Name: func(t, _ string) string { return r.note(t) },
		})
		if err == nil {
			return b.String()
		}
	}
	return r.note(text)
}

func (r *Redactor) note(text string) string {
	if text == "" || isPublic(text) && isPlain(text) || smallNumber.MatchString(text) || moment.MatchString(text) {
		return text
	}
	return r.pseudonym(Notes, text)
}

// tokens replaces words that are not public.
func (r *Redactor) tokens(text string) string { return r.line(text) }

var (
	address = regexp.MustCompile(`\b` + ip + `\b`)
	frame   = regexp.MustCompile(`^(.*\bFile ")([^"]*)(", line \d+)(?:(, in )(.*))?$`)
	// piece cuts a line: ids, paths, hexadecimal numbers, numbers with letters, and words.
	piece = lazily(color + `|` + bus + `|` + stamp + `|` + idForms +
		`|(?:[A-Za-z]:)?[^\s"'(),:;|=<>\[\]{}*/\\]*(?:[/\\][^\s"'(),:;|=<>\[\]{}*/\\]+)+[/\\]?` +
		`|[0-9][\pL\pM\pN_]*[\pL_][\pL\pM\pN_]*|[\pL_][\pL\pM\pN_]*`)
	measured = regexp.MustCompile(`^[0-9]+(?:[eE][0-9]+|[KMGTkmgt]?i?[Bb]|[WCMxs]|ms|us|ns|st|nd|rd|th)?$`)
	stamped  = regexp.MustCompile(`^(?:` + stamp + `)$`)
	busID    = regexp.MustCompile(`^` + bus + `$`)
	oom      = regexp.MustCompile(`(?i)out of memory|outofmemory|tried to allocate|memory summary`)
	// graphics are parts of the names of GPUs.
	graphics = regexp.MustCompile(`^(?:K80|M60|P(?:[0-9]|1[0-5])|P40|P100|V100[A-Z]?|T4|` +
		`A(?:2|10G?|16|30|40|100|800|[2-6]000)|H(?:20|100|200|800)|` +
		`L(?:4|20|40S?)|B[123]00|G[HB][23]00|MI\d{2,3}[XA]?|SXM\d?|PCIe|HBM\de?|NVL\d*|Instinct|Radeon|Xe|Arc|Ada|Blackwell)$`)
	hexOnly = regexp.MustCompile(`[a-fA-F]`)
)

// line redacts a line of text: of a traceback it keeps what a frame has, of any other the public words and numbers.
func (r *Redactor) line(line string) string {
	if strings.Contains(line, `\n|`) || strings.Contains(line, `\n `) { // a text of many lines, as code writes it
		lines := strings.Split(line, `\n`)
		for i := range lines {
			lines[i] = r.line(lines[i])
		}
		return strings.Join(lines, `\n`)
	}
	if !strings.Contains(line, `File "`) {
		// most lines
	} else if m := frame.FindStringSubmatch(line); m != nil {
		out := r.line(m[1][:len(m[1])-len(`File "`)]) + `File "` + r.Path(m[2]) + m[3]
		if m[4] != "" {
			out += m[4] + r.function(m[5], m[2])
		}
		return out
	}
	if strings.Contains(line, "erial") || strings.Contains(line, "ERIAL") {
		line = replaceGroup(serial(), line, func(n string) string {
			if !digits.MatchString(n) {
				return n
			}
			return r.pseudonym(Addresses, n)
		})
	}
	var b strings.Builder
	for start := 0; start < len(line); {
		end := start
		for end < len(line) && !isSpace(line[end]) {
			end++
		}
		if end > start {
			b.WriteString(r.chunk(line[start:end]))
		}
		for start = end; end < len(line) && isSpace(line[end]); end++ {
		}
		b.WriteString(line[start:end])
		start = end
	}
	return b.String()
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// chunk redacts what is between blanks, by its parts where nothing that is looked for goes over them: logs repeat most.
func (r *Redactor) chunk(text string) string {
	if strings.Contains(text, "://") || strings.IndexByte(text, '@') >= 0 || strings.IndexByte(text, 0x1b) >= 0 {
		return r.often(3, text, "", func() string { return r.pieces(text) })
	}
	var b strings.Builder
	for start := 0; start < len(text); {
		n := strings.IndexAny(text[start:], `"'<>()[],;|={}*`)
		if n < 0 {
			n = len(text) - start
		}
		b.WriteString(r.bit(text[start : start+n]))
		if start += n; start < len(text) {
			b.WriteByte(text[start])
			start++
		}
	}
	return b.String()
}

func (r *Redactor) bit(text string) string {
	letters, signs := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= 0x80, c < ' ', c == '\\':
			letters++
		case c == '.', c == '-', c == ':', c == '_':
			signs++
		}
	}
	if letters == 0 && signs < 3 { // a number, or nothing
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); letters == 1 && err == nil {
		return text // 1e-05
	}
	return r.often(3, text, "", func() string { return r.pieces(text) })
}

func (r *Redactor) pieces(text string) string {
	return piece().ReplaceAllStringFunc(text, func(w string) string {
		switch {
		case len(w) == 1, made.FindString(w) == w, isHex.MatchString(w), measured.MatchString(w), strings.Trim(w, "_") == "":
			return w
		case strings.Contains(w, "://"), strings.Contains(w, "@"), strings.HasPrefix(w, "arn:"), address.MatchString(w):
			return r.pseudonym(Addresses, w)
		case w[0] == 0x1b, busID.MatchString(w), stamped.MatchString(w):
			return w
		case ids().FindString(w) == w:
			return r.pseudonym(Addresses, w)
		case strings.Contains(w, ":") && !strings.ContainsAny(w, `/\`):
			if !hexOnly.MatchString(w) && !colons.MatchString(w) {
				return w // a time
			}
			return r.pseudonym(Addresses, w)
		case strings.ContainsAny(w, `/\`):
			if isPlain(w) || w == "N/A" {
				return w
			}
			return r.Path(w)
		case isPublic(w), graphics.MatchString(w):
			return w
		}
		return r.words(Words, w, public(), nil, nil)
	})
}
