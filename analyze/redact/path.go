package redact

import (
	"path"
	"regexp"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
)

var (
	made    = regexp.MustCompile(`[xX][bcdfghjkmnpqrtvwxz23456789]{8}[bcdfghjkmnpqrtvwxz]`)
	release = regexp.MustCompile(`^(?i:python-?[\d.]*t?(?:-windows)?|cpython-[\d.]+|torch-[\d.]+\S*|` +
		`v?\d{1,3}|v?\d+(?:\.\d+){1,2}|[a-z]:)$`)
	cell      = regexp.MustCompile(`^<(ipython-input-\d+)-[^>]*>$`)
	shared    = regexp.MustCompile(`^(.+?)(\.so(?:\.[\d.]+)?|\.cpython-[\w-]+\.so)$`)
	libraries = regexp.MustCompile(`^lib(?:torch\w*|c10\w*|caffe2\w*|cu[a-z]+\w*|nv[a-z]+\w*|nccl|c|m|pthread|stdc\+\+|gcc_s|dl|rt|gomp|` +
		`python[\d.]*|amdhip64|rocblas|MIOpen|hsa\S*|ascendcl|shm|mkl\w*|iomp5)$`)
	whole = regexp.MustCompile(`^<eval_with_key>\.\d+$|^<(?:string|stdin|unknown|console|module|lambda|__array_function__ internals)>$`)
	// built are parts of paths below which the code of torch, of Python and of C's library was built.
	built = regexp.MustCompile(`(?:^|/)((?:aten/src|c10/(?:core|cuda|util|hip|xpu|mobile)|torch/csrc|torch/include|caffe2|third_party|` +
		`Objects|Python|Modules|Include|Programs|sysdeps|nptl|csu)/)`)
)

// Path replaces the parts of a file's path that are not the same on all machines. What package frames takes from the path
// stays: how deep it is, its ending, the folder of installed packages and what is below, Python's own library, torch's.
func (r *Redactor) Path(file string) string {
	return r.often(0, file, "", func() string { return r.path(file) })
}

func (r *Redactor) path(file string) string {
	if file == "" || file == "??" || file == "none" {
		return file
	}
	if strings.HasPrefix(file, "<") {
		return r.noFile(file)
	}
	at := r.known(file)
	var b strings.Builder
	for start := 0; start < at; {
		end := start + strings.IndexAny(file[start:], `/\`)
		if end < start {
			end = len(file)
		}
		b.WriteString(r.part(file[start:end], end == len(file)))
		if end < len(file) {
			b.WriteByte(file[end])
		}
		start = end + 1
	}
	if at < len(file) {
		b.WriteString(r.keep(file[at:]))
	}
	return b.String()
}

// known is where in a path begins what is public.
func (r *Redactor) known(file string) int {
	at := frames.Known(file)
	slashed := strings.ReplaceAll(file, `\`, "/")
	if at < len(file) && r.strict && frames.Short(file) != file {
		first, _, _ := strings.Cut(frames.Short(file), "/")
		if !isPackage(strings.TrimSuffix(first, ".py")) {
			return len(file)
		}
	}
	if m := built.FindStringSubmatchIndex(slashed); m != nil && m[2] < at && !strings.HasSuffix(file, ".py") {
		at = m[2]
	}
	return at
}

// isPackage reports whether a package, or module, is one that everybody can have.
func isPackage(name string) bool {
	name = strings.ToLower(name)
	name, _, _ = strings.Cut(name, "-") // torch-2.6.0.dist-info
	return packages()[name]
}

// part is a folder, or the file itself.
func (r *Redactor) part(part string, isFile bool) string {
	lower := strings.ToLower(part)
	switch {
	case part == "", folders()[lower], release.MatchString(part), stems()[lower], made.FindString(part) == part:
		return part
	case strings.HasPrefix(part, "torchinductor_"):
		return "torchinductor_" + r.pseudonym(Paths, part[len("torchinductor_"):])
	case strings.HasPrefix(part, "fx_generated__"):
		return "fx_generated__" + r.pseudonym(Paths, part[len("fx_generated__"):])
	}
	if m := shared.FindStringSubmatch(part); m != nil && isFile {
		if libraries.MatchString(m[1]) {
			return part
		}
		return r.pseudonym(Paths, m[1]) + m[2]
	}
	ext := path.Ext(part)
	if !endings()[strings.ToLower(ext)] || ext == part {
		ext = ""
	}
	stem := strings.TrimSuffix(part, ext)
	for _, known := range []string{"cache_utils", "Register", "Redispatch", "Conv_v7", "Conv_v8"} {
		if rest, ok := strings.CutPrefix(stem, known); ok && isFile {
			if rest == "" {
				return part
			}
			return known + "_" + r.pseudonym(Paths, rest) + ext
		}
	}
	if ext == ".whl" || ext == ".egg" {
		name, rest, _ := strings.Cut(stem, "-")
		if isPackage(name) {
			return part
		}
		if released.MatchString(rest) {
			return r.pseudonym(Paths, name) + "-" + rest + ext
		}
	}
	if stems()[strings.ToLower(stem)] {
		return part
	}
	if isFile && pythonProgram.MatchString(part) {
		return part
	}
	return r.pseudonym(Paths, stem) + ext
}

// released is what follows the name of a package in the name of its file.
var released = regexp.MustCompile(`^\d+(?:\.\d+)*(?:-py[\d.]+)?$`)

var pythonProgram = regexp.MustCompile(`^(?:python[\d.]*[a-z]?(?:\.exe)?|torchrun|accelerate|` +
	`deepspeed|vllm|ipython|jupyter-\w+|pytest|setup\.py)$`)

// noFile is what stands in the place of a file where code comes from elsewhere.
func (r *Redactor) noFile(file string) string {
	if whole.MatchString(file) {
		return file
	}
	if m := cell.FindStringSubmatch(file); m != nil {
		return "<" + m[1] + "-" + r.pseudonym(Paths, file) + ">"
	}
	inner := strings.TrimSuffix(file[1:], ">")
	end := file[1+len(inner):]
	for _, begin := range []string{"frozen ", "attrs generated init ", "attrs generated ", "eval_with_key>"} {
		if name, ok := strings.CutPrefix(inner, begin); ok {
			if first, _, _ := strings.Cut(name, "."); isPackage(first) && begin == "frozen " {
				return file
			}
			return "<" + begin + r.pseudonym(Paths, name) + end
		}
	}
	return "<" + r.pseudonym(Paths, inner) + end
}
