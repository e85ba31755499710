package source

import (
	"fmt"
	"slices"
	"strings"
)

// Editor is the address by which a browser opens a file in an editor, with {path} and {line}; "" is none.
type Editor string

// editors are those that take addresses, by name.
var editors = []struct {
	name string
	Editor
}{
	{"vscode", "vscode://file{path}:{line}"},
	{"vscode-insiders", "vscode-insiders://file{path}:{line}"},
	{"vscodium", "vscodium://file{path}:{line}"},
	{"cursor", "cursor://file{path}:{line}"},
	{"windsurf", "windsurf://file{path}:{line}"},
	{"zed", "zed://file{path}:{line}"},
	{"pycharm", "pycharm://open?file={path}&line={line}"},
	{"idea", "idea://open?file={path}&line={line}"},
	{"sublime", "subl://open?url=file://{path}&line={line}"},
	{"textmate", "txmt://open?url=file://{path}&line={line}"},
	{"none", ""},
}

// Editors lists the names that ReadEditor knows.
func Editors() []string {
	var out []string
	for _, e := range editors {
		out = append(out, e.name)
	}
	return out
}

// ReadEditor reads a name, or an address of one of the editors' schemes with {path} in it. Others are refused: a page
// offers the address to a click, and the system runs what has its scheme.
func ReadEditor(text string) (Editor, error) {
	scheme, _, ok := strings.Cut(text, "://")
	for _, e := range editors {
		own, _, _ := strings.Cut(string(e.Editor), "://")
		switch {
		case !ok && text == e.name:
			return e.Editor, nil
		case ok && own == scheme && own != "":
			bad := strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\^`+"`", r) })
			if bad || !strings.Contains(text, "{path}") {
				return "", fmt.Errorf("expected an address with {path} and {line}, such as %s", editors[0].Editor)
			}
			return Editor(text), nil
		}
	}
	var schemes []string
	for _, e := range editors {
		if s, _, ok := strings.Cut(string(e.Editor), "://"); ok && !slices.Contains(schemes, s) {
			schemes = append(schemes, s)
		}
	}
	return "", fmt.Errorf("expected one of %s, or an address that begins with one of %s://", strings.Join(Editors(), ", "),
		strings.Join(schemes, "://, "))
}
