package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Bounds on a summary in Markdown: its lines, and the texts in it.
const (
	maxMarkdown = 40
	maxSentence = 400 // runes
	maxCode     = 120 // runes of a name
)

// room is how many reasons and steps, how many notes and how many stacks a summary shows.
type room struct{ sentences, notes, stacks int }

// rooms go from generous to narrow: notes are cut first, then stacks, then reasons and steps.
var rooms = []room{{5, 5, 5}, {5, 3, 5}, {5, 2, 4}, {4, 2, 3}, {3, 2, 3}}

// Markdown prints the outcome of an analysis for an issue or a chat: what Verdict prints, in at
// most 40 lines. Names from the file stand in code spans, where nothing is a link, a mention
// or HTML; in sentences what could be is escaped.
func Markdown(out io.Writer, r *analyze.Result) error {
	var b bytes.Buffer
	for _, n := range rooms {
		b.Reset()
		markdown(&b, r, n)
		if bytes.Count(b.Bytes(), []byte("\n")) <= maxMarkdown {
			break
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}

func markdown(w *bytes.Buffer, r *analyze.Result, n room) {
	top, rest := lead(&r.Verdict)
	headline := strings.ToUpper(string(r.Verdict.Status)) + ": " + r.Verdict.Headline
	fmt.Fprintf(w, "### %s\n\n%s, %s", prose(headline), code(r.Snapshot.Name), units.Bytes(r.Snapshot.Bytes))
	if top != nil {
		fmt.Fprintf(w, "; %s", top.Trust())
	}
	if n, residual := r.Books(); n > 0 || residual > 0 {
		fmt.Fprintf(w, "; **%s**", analyze.Verified(n, residual))
	}
	fmt.Fprint(w, "\n\n")
	if top != nil {
		bullets(w, "Why", "- ", top.Why, nil, n.sentences)
		bullets(w, "Next", "%d. ", top.Next, nil, n.sentences)
	} else {
		bullets(w, "Next", "%d. ", []string{nextStep(r)}, nil, n.sentences)
	}
	for i := range rest[:min(len(rest), 2)] {
		fmt.Fprintf(w, "Also: %s (%s)\n", prose(findingTitle(&rest[i])), rest[i].Trust())
	}
	if len(rest) > 0 {
		fmt.Fprintln(w)
	}
	if r.Pinned != nil && slices.ContainsFunc(r.Verdict.Findings, func(f finding.Finding) bool { return f.Status == finding.Host }) {
		fmt.Fprintf(w, "Pinned: %s\n\n", prose(pinnedWords(r.Pinned)))
	}
	if len(r.Devices) > 0 {
		d := focus(r, top)
		markdownLedger(w, r, d)
		m, when := decisive(d, top)
		markdownStacks(w, d, m, when, n.stacks)
	}
	problems, missing, fine := quality(r)
	bullets(w, "Data", "- ", slices.Concat(problems, missing), fine, n.notes)
	w.Truncate(w.Len() - 1) // the last empty line
}

// bullets prints a list of at most so many texts under a word. The last ones are never left out.
func bullets(w io.Writer, head, bullet string, texts, last []string, most int) {
	if most = max(most-len(last), 1); len(texts) > most {
		left := units.Count(int64(len(texts)-most+1)) + " more in the full report"
		texts = append(texts[:most-1:most-1], left)
	}
	if texts = slices.Concat(texts, last); len(texts) == 0 {
		return
	}
	fmt.Fprintf(w, "**%s**\n\n", head)
	for i, s := range texts {
		fmt.Fprintf(w, "%s%s\n", strings.ReplaceAll(bullet, "%d", fmt.Sprint(i+1)), prose(s))
	}
	fmt.Fprintln(w)
}

func markdownLedger(w io.Writer, r *analyze.Result, d *analyze.Device) {
	fmt.Fprint(w, "| memory | reserved | active | releasable | split | largest free |\n|---|---:|---:|---:|---:|---:|\n")
	for _, name := range []string{"peak", "oom", "end"} {
		if m := d.Moment(name); m != nil {
			f := &m.Frag
			fmt.Fprintf(w, "| %s, %s | %s | %s | %s | %s | %s |\n", chart.DeviceName(d.Timeline.Device), strings.ToLower(chart.MomentName(name)),
				units.Bytes(f.Reserved), units.Bytes(f.Active), units.Bytes(f.Releasable), units.Bytes(f.Split), units.Bytes(f.LargestFree))
		}
	}
	fmt.Fprintln(w)
	if n := len(r.Devices) - 1; n > 0 {
		fmt.Fprintf(w, "The file has %s.\n\n", units.Plural(n, "more device"))
	}
}

func markdownStacks(w io.Writer, d *analyze.Device, m *analyze.Moment, when string, most int) {
	if m == nil || len(m.Live) == 0 {
		return
	}
	sum := chart.Sum(m.Live)
	fmt.Fprintf(w, "| in use %s | of %s | blocks | allocated by |\n|---:|---:|---:|---|\n", when, units.Bytes(sum))
	groups, other, more := chart.Largest(m.Live, most)
	for i, site := range chart.Sites(groups) {
		g := &groups[i]
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", units.Bytes(g.Rounded), units.Percent(g.Rounded, sum), units.Count(g.Count), code(site))
	}
	if more > 0 {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", units.Bytes(other.Rounded), units.Percent(other.Rounded, sum), units.Count(other.Count), units.Plural(more, "more stack"))
	}
	fmt.Fprintln(w)
}

// code writes a name as a code span that cannot end early, also within a table, whose cells
// end at any bar that is not escaped.
func code(name string) string {
	name = chart.ClipLeft(oneSpaced(name), maxCode)
	if name == "" {
		return "(no name)"
	}
	run, longest := 0, 0
	for _, r := range name {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		name = " " + name + " "
	}
	return fence + strings.ReplaceAll(name, "|", `\|`) + fence
}

// prose writes a sentence so that no part of it is markup, a link or a mention.
func prose(s string) string {
	s = chart.Clip(oneSpaced(s), maxSentence)
	var b strings.Builder
	letter := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
	}
	const gap = "\u200b" // a space without width
	for i, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
			continue
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '>':
			b.WriteString("&gt;")
			continue
		case strings.ContainsRune("\\`*[]|~$", r), r == '#' && !letter(i-1), r == '!' && strings.HasPrefix(s[i:], "!["),
			r == '_' && !(letter(i-1) && letter(i+1)), i == 0 && (r == '-' || r == '+' || r == '='):
			b.WriteByte('\\')
		case (r == '.' || r == ')') && i > 0 && strings.Trim(s[:i], "0123456789") == "" && (i+1 == len(s) || s[i+1] == ' '): // a numbered list
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		switch {
		case r == '@', r == '#', r == ':' && strings.HasPrefix(s[i:], "://"), r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteString(gap)
		}
	}
	return b.String()
}

// oneSpaced puts a text onto one line.
func oneSpaced(s string) string { return strings.Join(strings.Fields(chart.Plain(s)), " ") }
