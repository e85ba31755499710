package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Names tell which of two lists is meant that a program always runs in one order.

// rival is which of two networks that are trained against each other a list's name says that it is of: the generator 0, which makes what
// the critic judges, and that critic 1; -1 for others.
func rival(name string) int {
	path := strings.Split(strings.ToLower(name), ".")
	return slices.IndexFunc([][]string{{"generator", "gen", "netg", "g"}, {"discriminator", "disc", "critic", "netd", "d"}},
		func(network []string) bool { return slices.Contains(network, path[0]) })
}

// stream is which of the two lists of a transformer like Flux a name says, by the code that calls one: its blocks of text beside an image
// come first, 0, those of a single stream of both behind them, 1; -1 for other names. Those of diffusers' are called transformer_blocks
// and single_transformer_blocks.
func (d *draft) stream(name string, caller snapshot.FrameID) int {
	switch name = strings.ToLower(lastPart(name)); {
	case strings.HasPrefix(name, "double_"),
		name == "transformer_blocks" && strings.HasPrefix(d.file(caller), "diffusers/models/transformers/"):
		return 0
	case strings.HasPrefix(name, "single_"):
		return 1
	}
	return -1
}

// ofRival are the lists of a generator, or of its critic, where a name is of one: those of a line that comes last in all passes that go
// through several are the critic's, which all that a generator makes goes through before the loss. Both may be of one class, and their
// lists of one line: then it is the line that calls them, if these do not begin alike, as those of one critic do that is called twice.
func (d *draft) ofRival(lists []keeper, name string) []keeper {
	at := rival(name)
	if at < 0 {
		return lists
	}
	lineOf, first := func(k *keeper) string { return k.line }, map[int64]bool{}
	for i := range lists {
		first[d.sizes[lists[i].calls[0].rows[0]]] = true
	}
	if d.ofOneLine(lists) && len(first) == len(lists) {
		lineOf = func(k *keeper) string { return fmt.Sprint(k.around) }
	}
	type end struct {
		row     int32
		line    string
		several bool
	}
	ends := map[*pass]end{}
	for _, k := range lists {
		line := lineOf(&k)
		for _, c := range k.calls {
			e, ok := ends[c.pass]
			e.several = e.several || ok && e.line != line
			if c.rows[0] >= e.row {
				e.row, e.line = c.rows[0], line
			}
			ends[c.pass] = e
		}
	}
	critic := ""
	for _, e := range ends {
		switch {
		case !e.several:
		case critic != "" && e.line != critic:
			return lists
		default:
			critic = e.line
		}
	}
	if critic == "" {
		return lists
	}
	return slices.DeleteFunc(slices.Clone(lists), func(k keeper) bool { return (lineOf(&k) == critic) != (at == 1) })
}
