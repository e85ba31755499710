package text

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/analyzetest"
)

func TestProse(t *testing.T) {
	for in, want := range map[string]string{
		"model.py:39 forward, 1.25 GiB":       "model.py:39 forward, 1.25 GiB",
		"<script>alert(1)</script> &amp;":     "&lt;script&gt;alert(1)&lt;/script&gt; &amp;amp;",
		"a|b `c` *d* [e](f) $x$ ~y~ \\":       "a\\|b \\`c\\` \\*d\\* \\[e\\](f) \\$x\\$ \\~y\\~ \\\\",
		"ask @octocat, see #1 and step#2":     "ask @\u200boctocat, see \\#\u200b1 and step#\u200b2",
		"at https://evil.test, www.evil.test": "at https:\u200b//evil.test, www.\u200bevil.test",
		"_init_ loss_list __x":                "\\_init\\_ loss_list \\_\\_x",
		"# no title\n- no list\x00\u202e":     "\\#\u200b no title - no list",
		"- no list":                           "\\- no list",
		"7. no list":                          "7\\. no list",
		"![image](x)":                         "\\!\\[image\\](x)",
	} {
		if got := prose(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{
		"model.py:39 @x <b>":     "`model.py:39 @x <b>`",
		"a`b``c":                 "``` a`b``c ```",
		"`":                      "`` ` ``",
		"a|b":                    "`a\\|b`",
		"a\nb\r\x1b[31m\u202ec":  "`a b [31m c`",
		"\x00":                   "(no name)",
		strings.Repeat("x", 500): "`…" + strings.Repeat("x", maxCode-1) + "`",
	} {
		if got := code(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestMarkdownHostile puts into every text of a result what would break out of Markdown.
func TestMarkdownHostile(t *testing.T) {
	evil := "x` | </td><img src=x onerror=alert(1)>\n\n# title @all \u202e\x1b[2J\x00"
	r := analyzetest.Failed(t)
	r.Snapshot.Name = evil
	r.Verdict.Headline = evil
	for i := range r.Verdict.Findings {
		f := &r.Verdict.Findings[i]
		f.Title, f.Why, f.Next = evil, []string{evil}, []string{evil}
	}
	for i := range r.Devices[0].Moments {
		for k := range r.Devices[0].Moments[i].Live {
			r.Devices[0].Moments[i].Live[k].Site = evil + strings.Repeat("n", 1<<20)
		}
	}
	r.Quality[0].Text = evil
	out := markdownOf(t, r)
	fits(t, "hostile", withoutEmpty(out), maxLines, 1000)
	if strings.ContainsAny(out, "\x1b\x00\u202e") {
		t.Error("control characters")
	}
	columns := 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		outside, inside := "", false // of code spans
		for i, part := range strings.Split(line, "``") {
			if inside = i%2 == 1; !inside {
				outside += part
			}
		}
		if strings.Contains(outside, "<") || strings.Contains(outside, "@all") {
			t.Errorf("breaks out: %q", line)
		}
		cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns > 0 && cells > 0 && cells != columns {
			t.Errorf("%d bars, not %d: %q", cells, columns, line)
		}
		columns = cells
		if strings.HasPrefix(line, "# ") {
			t.Errorf("a title: %q", line)
		}
	}
}
