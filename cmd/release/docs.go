package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// summary says in one line what snapana is.
const summary = "Explains what fills the GPU, from PyTorch memory snapshots"

// docs are the manual and the completions of shells.
type docs struct {
	man         []manPage
	completions []file
}

// manPage is a page of the manual for man(1).
type manPage struct {
	name    string
	section int
	data    []byte
}

// path is the page's place below a folder of manuals.
func (m manPage) path() string { return fmt.Sprintf("man%d/%s.%[1]d", m.section, m.name) }

// shared are the docs where programs of a system look for them, below /usr, a virtual environment or the like. zsh looks
// elsewhere for what packages bring and for what is installed by hand.
func (d docs) shared(os, zsh string) (all []file) {
	if os == "windows" {
		return nil
	}
	for _, m := range d.man {
		all = append(all, file{name: "share/man/" + m.path(), data: m.data})
	}
	places := map[string]string{"bash/snapana": "share/bash-completion/completions/snapana", "zsh/_snapana": zsh,
		"fish/snapana.fish": "share/fish/vendor_completions.d/snapana.fish"}
	for _, c := range d.completions {
		if to := places[c.name]; to != "" {
			all = append(all, file{name: to, data: c.data})
		}
	}
	return all
}

// document makes the docs of the manual's Markdown and of what the program says of itself.
func (r *release) document(w *workshop, tree fs.FS, program string) (d docs, err error) {
	ask := func(args ...string) string {
		if err != nil {
			return ""
		}
		cmd := exec.CommandContext(w.ctx, program, args...)
		cmd.Env = []string{"SNAPANA_WIDTH=72", "SNAPANA_COLOR=never", "LC_ALL=C.UTF-8", "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
		var out string
		out, err = output(cmd)
		return strings.ReplaceAll(out, "\r\n", "\n")
	}
	for _, c := range [][2]string{{"bash", "snapana"}, {"zsh", "_snapana"}, {"fish", "snapana.fish"}, {"powershell", "snapana.ps1"}} {
		d.completions = append(d.completions, file{name: c[0] + "/" + c[1], data: []byte(ask("completion", c[0]) + "\n")})
	}
	b := book{version: r.version.plain, date: r.time.Format("2006-01-02")}
	for line := range strings.SplitSeq(ask("man", "--width", "120"), "\n") {
		if name, about, ok := strings.Cut(line, "  "); ok {
			b.chapters = append(b.chapters, chapter{name: name, about: strings.TrimSpace(about)})
		} else if err == nil {
			return d, fmt.Errorf("`snapana man` printed %q", line)
		}
	}
	help := parseHelp(ask("--help"))
	for i := range b.chapters {
		c := &b.chapters[i]
		page, failed := fs.ReadFile(tree, path.Join("cmd/snapana/manual", c.name+".md"))
		if failed != nil {
			return d, failed
		}
		c.text = string(page)
		if strings.Contains(help.sections["Available Commands"], "\n  "+c.name+" ") {
			own := parseHelp(ask(c.name, "--help"))
			c.help = &own
		}
	}
	if err != nil {
		return d, err
	}
	d.man = append(d.man, b.overview(help))
	for _, c := range b.chapters {
		d.man = append(d.man, b.page(c))
	}
	return d, nil
}

// help is what --help prints, cut at its headings.
type help struct {
	text     string
	sections map[string]string // each line begins with a line break
}

var helpHeading = regexp.MustCompile(`^[A-Z][A-Za-z ]+:$`)

func parseHelp(s string) help {
	h := help{sections: map[string]string{}}
	heading := ""
	for line := range strings.SplitSeq(s, "\n") {
		switch {
		case helpHeading.MatchString(line):
			heading = strings.TrimSuffix(line, ":")
		case heading == "":
			h.text += line + "\n"
		case strings.HasPrefix(line, "  "):
			h.sections[heading] += "\n" + line
		}
	}
	h.text = strings.TrimSpace(h.text)
	return h
}

var (
	picture  = regexp.MustCompile(`(?m)^!\[[^]]*\]\([^)]*\)\n\n?`)
	hyperref = regexp.MustCompile(`\[([^]]+)\]\(([^)]+)\)`)
)

// standalone is Markdown for readers who have no repository beside it: without pictures, and with the texts of links to
// its files in place of the links.
func standalone(markdown []byte) []byte {
	text := picture.ReplaceAllString(string(markdown), "")
	return []byte(hyperref.ReplaceAllStringFunc(text, func(link string) string {
		m := hyperref.FindStringSubmatch(link)
		if strings.Contains(m[2], "://") {
			return link
		}
		return m[1]
	}))
}
