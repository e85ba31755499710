package oomlog

import "bytes"

// form is a way in which a message begins.
type form int

const (
	formAllocator form = iota
	formAsync
	formMPS
	formOutside
	formCPU
)

// heads are what comes before an anchor, without blanks and in lower case. Those that are
// loose also stand in prose and in programs, and need more evidence.
var heads = []struct {
	text    string
	form    form
	backend string
	loose   bool
}{
	{"cudaoutof", formAllocator, "cuda", true}, {"cudaoutofthe", formAllocator, "cuda", true},
	{"hipoutof", formAllocator, "hip", true}, {"hipoutofthe", formAllocator, "hip", true},
	{"xpuoutof", formAllocator, "xpu", true}, {"npuoutof", formAllocator, "npu", true},
	{"mpsbackendoutof", formMPS, "mps", true},
	{"exceedallowed", formAsync, "cuda", false},
	{"cudaerror:outof", formOutside, "cuda", true}, {"hiperror:outof", formOutside, "hip", true},
	{"cudadrivererror:outof", formOutside, "cuda", true}, {"hipdrivererror:outof", formOutside, "hip", true},
	{"cudaruntimeerror(2):outof", formOutside, "cuda", false},
	{"cudafailure'outof", formOutside, "cuda", false}, {"cudafailure2'outof", formOutside, "cuda", false},
	{"hipfailure'outof", formOutside, "hip", false},
	{"defaultcpuallocator:can'tallocate", formCPU, "cpu", false},
	{"defaultcpuallocator:notenough", formCPU, "cpu", false},
}

// worth reports quickly whether "memory", the "m" at raw[at], may belong to a message.
func worth(raw []byte, at int) bool {
	if at == 0 {
		return false
	}
	before := raw[:at]
	switch b := before[at-1]; {
	case b == ' ' && at > 1 && isLetter(before[at-2]):
		for _, word := range []string{"of", "the", "allowed", "allocate", "enough", " stderr F", " stdout F", "\nf"} {
			if bytes.HasSuffix(before[:at-1], []byte(word)) {
				return true
			}
		}
		if before[at-2] != 'm' { // which ends a colour
			return false
		}
	case b == 'f': // OutOfMemoryError
		return bytes.HasSuffix(before, []byte("OutOf"))
	case b == 'r': // cudaErrorMemoryAllocation
		return bytes.HasSuffix(before, []byte("cudaError"))
	case b == ',' || b == '-' || b == '_' || b == '/' || b == '.' || b == '=':
		return false
	}
	return decorated(before[max(0, at-160):])
}

// decorated reports whether the word before "memory" may end a line, or stand before colours
// or markup.
func decorated(before []byte) bool {
	words := [...]string{"of", "the", "allowed", "allocate", "enough"}
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	if !marked(line) {
		above := bytes.TrimRight(before[:len(before)-len(line)], " \t\r\n|│║┃")
		if !marked(above[max(0, len(above)-20):]) {
			for _, word := range words {
				if bytes.HasSuffix(above, []byte(word)) {
					return true
				}
			}
			return false
		}
	}
	for _, word := range words {
		for i := 0; ; {
			k := bytes.Index(before[i:], []byte(word))
			if k < 0 {
				break
			}
			if i += k + len(word); i == len(before) || !isWord(before[i]) {
				return true
			}
		}
	}
	return false
}

// marked reports whether text has the start of a colour, a tag, an entity or an escape.
func marked(text []byte) bool {
	for _, b := range text {
		if b == 0x1b || b == '<' || b == '&' || b == '\\' {
			return true
		}
	}
	return false
}
