package allocator

import (
	"cmp"
	"strings"
)

// tokens cuts at the four signs of the grammar, which are tokens too, and leaves blanks out.
func (r Release) tokens(s string) []string {
	skipped := blanks
	if r.before(oneParser) {
		skipped = " "
	}
	var out []string
	word := func(w string) {
		w = strings.Map(func(c rune) rune {
			if strings.ContainsRune(skipped, c) {
				return -1
			}
			return c
		}, w)
		if w != "" {
			out = append(out, w)
		}
	}
	from := 0
	for i := range len(s) {
		if strings.IndexByte(",:[]", s[i]) >= 0 {
			word(s[from:i])
			out = append(out, s[i:i+1])
			from = i + 1
		}
	}
	word(s[from:])
	return out
}

// parser reads tokens into settings. After the first error it reads on without effect.
type parser struct {
	release Release
	old     bool // up to 2.9, where CUDA has a parser of its own
	tokens  []string
	at      int
	loose   int // signs that were others, or that were not there
	Reading
	err *Refusal
}

func (p *parser) done() (Reading, error) {
	if p.err != nil {
		return Reading{}, p.err
	}
	return p.Reading, nil
}

// fail keeps the first error, which is that of an unknown key where one came before.
func (p *parser) fail(class, text string) {
	if p.err == nil {
		p.err = cmp.Or(p.Unknown, &Refusal{p.release, class, strings.TrimSpace(text)})
	}
}

// invalid is a check of torch's own that failed.
func (p *parser) invalid(text string) {
	if p.old {
		p.fail("RuntimeError", text)
	} else {
		p.fail("ValueError", text)
	}
}

// outside is the common parser's error for a string that ends too early. Where a key has no value it aborts the import
// of torch.
func (p *parser) outside(class string) { p.fail(class, "Index out of bounds in ConfigTokenizer") }

func (p *parser) misread(written, read string) {
	if written != read {
		p.Misread = append(p.Misread, Misread{written, read})
	}
}

// load finds the backend, as torch does while it is imported. The common parser then goes over all keys, too.
func (p *parser) load() {
	n := len(p.tokens)
	if p.old {
		for i, t := range p.tokens {
			if t == "backend" && i+2 < n && p.tokens[i+1] == ":" {
				p.Conf.Async = p.tokens[i+2] == "cudaMallocAsync"
				break
			}
		}
		return
	}
	for p.at = 0; p.at < n && p.err == nil; p.at++ { // the comma
		key := p.tokens[p.at]
		p.skip()
		if key == "backend" && p.err == nil {
			p.Conf.Async = p.tokens[p.at-1] == "cudaMallocAsync"
			return
		}
	}
}

// skip goes past a key and its value.
func (p *parser) skip() {
	if p.at += 2; p.at >= len(p.tokens) {
		p.outside("")
		return
	}
	if p.tokens[p.at] == "[" {
		for p.at < len(p.tokens) && p.tokens[p.at] != "]" {
			p.at++
		}
		if p.at == len(p.tokens) {
			p.fail("", "Expected closing bracket ']' in ConfigTokenizer but reached end of config")
		}
	}
	p.at++
}

// pass reads the settings that are wanted, and skips the others.
func (p *parser) pass(wanted func(*setting) bool) {
	for p.at = 0; p.at < len(p.tokens) && p.err == nil; {
		key := p.tokens[p.at]
		set, known := settings[key]
		if !known || p.release.before(set.since) {
			unknown := &Refusal{p.release, "ValueError", "Unrecognized key '" + key + "' in CUDA allocator config."}
			if p.old {
				unknown = &Refusal{p.release, "RuntimeError", "Unrecognized CachingAllocator option: " + key}
			}
			if p.Unknown = cmp.Or(p.Unknown, unknown); !known {
				p.err = p.Unknown
				return
			}
		}
		p.Conf.Needs = max(p.Conf.Needs, set.since)
		if !wanted(&set) {
			p.skip()
			p.at++
			continue
		}
		from, loose := p.at, p.loose
		p.at++
		p.sign(":")
		set.read(p, key)
		if p.loose != loose && key == "roundup_power2_divisions" {
			p.misread(p.text(from), key+":"+cmp.Or(p.Conf.Roundup.String(), "1"))
		} else if p.loose != loose && p.err == nil {
			p.misread(p.text(from), key+":"+p.tokens[from+2])
		}
		if p.err == nil && p.at < len(p.tokens) {
			if pair := p.text(from); !p.old && p.tokens[p.at] != "," {
				p.misread(pair+p.tokens[p.at], pair)
			}
			p.sign(",")
		}
	}
}

// text is what was read from a token on.
func (p *parser) text(from int) string {
	return strings.Join(p.tokens[from:min(p.at, len(p.tokens))], "")
}

// sign goes past a sign. The common parser does not look whether it is one.
func (p *parser) sign(want string) {
	if p.at >= len(p.tokens) || p.tokens[p.at] != want {
		p.loose++
		if p.old {
			p.fail("RuntimeError", "Error parsing CachingAllocator settings, expected "+want)
		}
	}
	p.at++
}

// next takes the token that should be a value.
func (p *parser) next(missing string) string {
	if p.at++; p.at <= len(p.tokens) {
		return p.tokens[p.at-1]
	}
	if p.old {
		p.fail("RuntimeError", missing)
	} else {
		p.outside("RuntimeError")
	}
	return ""
}

func missing(key string) string { return "Error, expecting " + key + " value" }

// comma goes past the one between two entries of a list.
func (p *parser) comma() {
	switch {
	case p.err != nil:
	case p.at < len(p.tokens):
		if p.tokens[p.at] != "]" {
			p.sign(",")
		}
	case p.old:
		p.sign(",") // up to 2.4 it may crash
	default:
		p.outside("RuntimeError")
	}
}
