package oomlog

import (
	"bytes"
	"regexp"
)

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

// linePrefix measures what is before the text in a continued line: something of the shape
// of the first line's prefix, or what loggers are known to write.
func linePrefix(raw, prefix []byte) int {
	n := alike(raw, prefix)
	for range 12 {
		k := decoration(raw[n:])
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

// alike measures how far two lines begin alike, digits aside, up to the end of a word.
func alike(line, above []byte) int {
	n := 0
	for n < len(line) && n < len(above) && (line[n] == above[n] || isDigit(line[n]) && isDigit(above[n])) {
		n++
	}
	for n > 0 && line[n-1] != ' ' && line[n-1] != '\t' && line[n-1] != ']' && line[n-1] != '|' {
		n--
	}
	if n < 3 {
		return 0
	}
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isWord(b byte) bool { return b == '_' || isDigit(b) || isLetter(b) }

// repeated is what the last line of raw begins with like the line before it, digits aside.
func repeated(raw []byte) []byte {
	at := bytes.LastIndexByte(raw, '\n')
	if at < 0 {
		return nil
	}
	line, above := raw[at+1:], raw[:at]
	above = above[bytes.LastIndexByte(above, '\n')+1:]
	return line[:alike(line, above)]
}

// decoration measures one thing that loggers put in front of text; no message has a line
// that begins with such.
func decoration(raw []byte) int {
	if len(raw) == 0 {
		return 0
	}
	switch b := raw[0]; {
	case b == ' ' || b == '\t':
		return len(raw) - len(bytes.TrimLeft(raw, " \t"))
	case b == 0x1b:
		return 1 + control(raw[1:])
	case b == '[': // [rank3]: and [2024-01-01 12:00:00]
		if end := closing(raw, ']', 80); end > 0 {
			if end < len(raw) && raw[end] == ':' {
				end++
			}
			return end
		}
	case b == '(': // (EngineCore pid=7)
		end := closing(raw, ')', 120)
		for _, word := range []string{"pid=", "ip=", "rank", "Rank"} {
			if bytes.Contains(raw[:end], []byte(word)) {
				return end
			}
		}
	case b == 0xe2 && len(raw) > 2 && (raw[1] == 0x94 || raw[1] == 0x95): // box drawing
		return 3
	case isDigit(b):
		return clock(raw)
	case isLetter(b):
		return label(raw)
	case len(raw) > 1 && (raw[1] == ' ' || raw[1] == '\t') && bytes.IndexByte([]byte("|>#*-\"'"), b) >= 0:
		return 2
	case bytes.HasPrefix(raw, []byte("// ")):
		return 3
	}
	return 0
}

// closing finds the end of a short bracket on one line, 0 for none.
func closing(raw []byte, b byte, most int) int {
	for i := 1; i < len(raw) && i <= most; i++ {
		switch raw[i] {
		case b:
			return i + 1
		case '\n', '[', '(':
			return 0
		}
	}
	return 0
}

// clock measures dates, times and the labels of srun, like "2024-05-01", "12:00:00,123" and "3:".
func clock(raw []byte) int {
	const marks = ":-"
	raw = raw[:min(len(raw), 40)]
	rest := bytes.TrimLeft(raw, marks+"0123456789.,TZ+")
	n := len(raw) - len(rest)
	if len(rest) == 0 || rest[0] != ' ' && rest[0] != '\t' || !bytes.ContainsAny(raw[:n], marks) {
		return 0
	}
	return n
}

// label measures the names that stand in front of lines: levels, "rank 3:", glog's
// "E0501 12:00:00.1 77 file.cc:12]" and compose's "service  |".
func label(raw []byte) int {
	n := 0
	for n < len(raw) && n < 64 && (isWord(raw[n]) || raw[n] == '.' || raw[n] == '-') {
		n++
	}
	if n == len(raw) {
		return 0
	}
	word := raw[:n]
	switch raw[n] {
	case ':', ' ', '\t', '|':
		for _, level := range []string{"debug", "info", "warning", "warn", "error", "critical", "fatal", "stderr", "stdout"} {
			if bytes.EqualFold(word, []byte(level)) {
				if rest := raw[n+1:]; level[:3] == "std" && len(rest) > 1 && rest[1] == ' ' { // "stderr F "
					return n + 3
				}
				return n + 1
			}
		}
	}
	if len(word) >= 4 && bytes.EqualFold(word[:4], []byte("rank")) {
		rest := bytes.TrimLeft(raw[4:min(len(raw), 16)], " =:")
		if digits := bytes.TrimLeft(rest, "0123456789"); len(digits) < len(rest) {
			end := min(len(raw), 16) - len(digits)
			if end < len(raw) && raw[end] == ':' {
				end++
			}
			return end
		}
	}
	if len(word) == 5 && bytes.IndexByte([]byte("EWIF"), word[0]) >= 0 && isDigit(word[1]) && isDigit(word[4]) {
		if end := closing(raw, ']', 120); end > 0 {
			return end
		}
	}
	rest := bytes.TrimLeft(raw[n:min(len(raw), n+32)], " ")
	if len(rest) > 0 && rest[0] == '|' {
		return min(len(raw), n+32) - len(rest) + 1
	}
	return 0
}
