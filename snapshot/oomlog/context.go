package oomlog

import (
	"bytes"
	"regexp"
	"strings"
)

// stops reports whether a sentence may end here, so that what came is a message by itself.
func (p *parser) stops() bool {
	return p.i >= len(p.text) || strings.IndexByte(".\n'\"`)]<,;:(!\\", p.text[p.i]) >= 0 ||
		p.text[p.i] == ' ' && (p.i+1 == len(p.text) || !isWord(p.text[p.i+1]) || bytes.HasPrefix(p.text[p.i+1:], []byte("at ")))
}

// quoted reports whether a program compares the text with something, or prose quotes it.
func (p *parser) quoted() bool {
	rest := p.text[p.i:]
	return len(rest) > 0 && rest[0] == '`' || len(rest) > 1 && (rest[0] == '"' || rest[0] == '\'') &&
		(bytes.HasPrefix(rest[1:], []byte(" in ")) || bytes.HasPrefix(rest[1:], []byte(" not in ")))
}

// introduced reports whether the text in front of a message is no sentence that goes on.
func introduced(before []byte) bool {
	before = bytes.TrimRight(before, " ")
	return len(before) == 0 || !isWord(before[len(before)-1]) && before[len(before)-1] != ','
}

var (
	ranks     = regexp.MustCompile(`(?i)(?:\b|_)(?:rank|default)[ =:_]{0,2}(\d{1,7})\b`)
	srunLabel = regexp.MustCompile(`^\s*(\d{1,6}): `)
)

// context reads what is in front of a message that begins at raw[start]: the class of the
// exception, and the line's prefix before that. It leaves the cleaned text of the line in
// f.before.
func (f *finder) context(raw []byte, start int) (class string, prefix []byte) {
	front := raw[max(0, start-behind):start]
	f.before.read(front, nil)
	line := front[bytes.LastIndexByte(front, '\n')+1:]
	if at, end := exception(f.before.text); at < end {
		class = string(f.before.text[at:end])
		if from := int(f.before.from[at]); from >= len(front)-len(line) {
			line = front[len(front)-len(line) : from]
		}
	}
	f.before.text = f.before.text[bytes.LastIndexByte(f.before.text, '\n')+1:]
	return class, line
}

// exception finds the class that text ends with: "torch.OutOfMemoryError: " or "RuntimeError('".
func exception(text []byte) (start, end int) {
	text = bytes.TrimRight(text, " \n'\"")
	end = len(text) - 1
	if end < 0 || text[end] != ':' && text[end] != '(' {
		return 0, 0
	}
	if text = text[:end]; !bytes.HasSuffix(text, []byte("Error")) && !bytes.HasSuffix(text, []byte("Exception")) {
		return 0, 0
	}
	for start = end; start > 0 && end-start < 100 && (isWord(text[start-1]) || text[start-1] == '.'); {
		start--
	}
	return start, end
}
