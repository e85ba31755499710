package change

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A name with numbers tells more than one without: "stages.1.blocks.*" are the modules in one of a list, and "layer2.*" those of the
// second of the lists that a function calls one after another.

// nested are the modules of names that go through a module of a list, by name; nil where some name does not, or nothing has lists in
// the modules of a list. Which list it is is guessed where several have. A number that there is not is refused.
func (d *draft) nested(c *Change, names []string, refuse refusal) (lists map[string][]group, guessed bool, err error) {
	var outers []string
	for _, name := range names {
		outer, _ := through(name)
		if outer == "" {
			return nil, false, nil
		}
		if !slices.Contains(outers, outer) {
			outers = append(outers, outer)
		}
	}
	nests := slices.DeleteFunc(d.keeping(d.lists()), func(k keeper) bool { list, _ := d.nest(&k.group); return list == nil })
	if len(nests) > len(outers) {
		whole := &Change{Text: c.Text}
		for _, name := range outers {
			whole.modules = append(whole.modules, modules{name: name, to: -1})
		}
		nests, guessed = d.outstanding(nests, whole, outers), true
	}
	switch {
	case len(nests) == 0:
		return nil, false, nil
	case len(nests) != len(outers):
		return nil, false, d.ambiguous(c, nests)
	}
	lists = map[string][]group{}
	for _, name := range names {
		outer, at := through(name)
		list, inside := d.nest(&nests[slices.Index(outers, outer)].group)
		beyond := func(other string) bool { of, n := through(other); return of == outer && n >= list.most }
		if slices.ContainsFunc(names, beyond) {
			if at = d.ranked(names, outer, list, inside, at); at < 0 {
				return nil, false, refuse(TooFew, list.line, fmt.Sprint(list.most))
			}
			guessed = true
		}
		for i := range inside {
			if g := d.in(&inside[i], list, at); len(g.calls) > 0 {
				lists[name] = append(lists[name], g)
			}
		}
		if lists[name] == nil {
			return nil, false, refuse(NoModules)
		}
		guessed = guessed || list.loops
	}
	return lists, guessed, nil
}

// ranked is which module of a list a number means, where some are beyond it, and names have as many numbers of that list as it has modules
// with lists: others are between them that call none, as those that merge patches. It is -1 where they have not.
func (d *draft) ranked(names []string, outer string, list *group, inside []group, at int) int {
	var numbers, with []int
	for _, name := range names {
		if of, n := through(name); of == outer && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	for n := range list.most {
		if slices.ContainsFunc(inside, func(in group) bool { return len(d.in(&in, list, n).calls) > 0 }) {
			with = append(with, n)
		}
	}
	if len(numbers) < 2 || len(numbers) != len(with) {
		return -1
	}
	slices.Sort(numbers)
	return with[slices.Index(numbers, at)]
}

// through is the list that a name goes through, and the module of it; "" for a name that goes through none, or several.
func through(name string) (list string, at int) {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		switch {
		case err != nil:
		case i == 0 || n < 0 || list != "":
			return "", 0
		default:
			list, at = strings.Join(parts[:i], "."), n
		}
	}
	return list, at
}

// towers are the modules of names such as "text.blocks" and "visual.blocks", of models that one line calls one after another, each with a
// list: by name, nil where that is not so. Which model a name means shows where it is of text or of images, and they begin with an
// embedding or a convolution, and where it is of questions or of what answers them, see side; of all of them together it does not matter.
func (d *draft) towers(c *Change, names []string) map[string][]group {
	image, tower := ofImages(names[0]), side(names[0])
	alike := func(name string) bool { return strings.Contains(name, ".") && lastPart(name) == lastPart(names[0]) }
	switch {
	case !c.wholeLists(), len(names) == 1 && image == nil && tower < 0, partOf(names[0]) >= 0:
		return nil
	case len(names) > 1 && (turn(names[0]) >= 0 || slices.ContainsFunc(names, func(name string) bool { return !alike(name) })):
		return nil
	}
	var out map[string][]group
	for _, k := range d.keeping(d.lists()) {
		list, inside := d.nest(&k.group)
		if list == nil || list.most != 2 || len(names) > list.most {
			continue
		}
		if out != nil {
			return nil // of several
		}
		out = map[string][]group{}
		for i, name := range names {
			at := i
			switch {
			case len(names) > 1:
			case tower >= 0:
				at = tower
			default:
				at = d.begins(list, *image)
			}
			for k := range inside {
				if g := d.in(&inside[k], list, at); len(g.calls) > 0 {
					out[name] = append(out[name], g)
				}
			}
			if out[name] == nil {
				return nil
			}
		}
	}
	return out
}

// tower is the one of several lists that is of the model which a name is of, of images or of text: a convolution or an embedding comes
// before it. A name of neither is of text, as models that look at images are named for that. It is nil where that is so of none, or of
// several.
func (d *draft) tower(lists []keeper, name string) *keeper {
	of := map[bool]*keeper{}
	for i := range lists {
		image, known := d.seesImages(lists, i)
		switch {
		case !known:
		case of[image] != nil:
			return nil
		default:
			of[image] = &lists[i]
		}
	}
	image := ofImages(name)
	if image == nil {
		if of[true] == nil {
			return nil
		}
		return of[false]
	}
	return of[*image]
}

// seesImages reports whether a convolution comes before one of several lists, as patches of an image are made, or an embedding alone, and
// whether either does.
func (d *draft) seesImages(lists []keeper, of int) (image, known bool) {
	const far = 64 // rows
	first := lists[of].calls[0].rows[0]
	least := max(first-far, int32(d.warm))
	for i := range lists { // what comes before another list is of that
		for _, c := range lists[i].calls {
			if last := c.rows[len(c.rows)-1]; i != of && last < first {
				least = max(least, last+1)
			}
		}
	}
	for row := first - 1; row >= least; row-- {
		own := d.stack(d.code(row))
		if d.phase(row) == inProgram && d.convolves(row) {
			return true, true
		}
		known = known || len(own) > 0 && d.name(own[0]) == "embedding"
	}
	return false, known
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// ofImages reports whether a name is of a model of images, or of text, as its first part says that tells; nil for neither.
func ofImages(name string) *bool {
	parts := strings.Split(strings.ToLower(name), ".")
	for _, part := range parts[:len(parts)-1] {
		is := func(words ...string) bool {
			return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(part, word) })
		}
		if images := is("vis", "image", "img"); images || is("text", "txt", "lang") {
			return &images
		}
	}
	return nil
}

// side is which of the two models of a retriever a name is of, as its first part says: that of questions 0, which programs call first, or
// that of contexts, as which passages and documents are known, too, 1; -1 for others. They are question_model and ctx_model in DPR's own
// code (dpr/models/biencoder.py: BiEncoder.forward), and question_encoder and ctx_encoder in transformers' models of it.
func side(name string) int {
	first, _, ok := strings.Cut(strings.ToLower(name), ".")
	if !ok {
		return -1
	}
	return slices.IndexFunc([][]string{{"question", "query"}, {"ctx", "context", "passage", "document", "doc"}}, func(of []string) bool {
		return slices.ContainsFunc(of, func(word string) bool { return slices.Contains(strings.Split(first, "_"), word) })
	})
}

// begins is which module of a list begins with a convolution, or an embedding; -1 where not one does.
func (d *draft) begins(list *group, convolves bool) int {
	found := -1
	for i := range list.calls {
		c := &list.calls[i]
		if c.pass != list.calls[0].pass {
			break
		}
		if d.convolves(c.rows[0]) == convolves {
			if found >= 0 {
				return -1
			}
			found = c.ordinal
		}
	}
	return found
}

// nest is a list of which each module has one of its own, or several, and these; nil where it is none. Of a module that does nothing but
// call those of a list no stack tells that it is called once: then that list is looked at.
func (d *draft) nest(g *group) (list *group, inside []group) {
	if g.outer != nil && g.outer.most < g.most {
		return g.outer, []group{*g}
	}
	for list = g; ; {
		all := d.calledIn(list, true, d.contains)
		inside = slices.DeleteFunc(slices.Clone(all), func(in group) bool { return !in.list || in.most <= list.most })
		if len(inside) > 0 {
			return list, inside
		}
		if len(all) != 1 || !all[0].list || all[0].most != list.most {
			return nil, nil
		}
		list = &all[0]
	}
}

// in is what one module of a list has of a group.
func (d *draft) in(g, list *group, at int) group {
	out := *g
	out.calls, out.most, out.bodies = nil, 0, nil
	out.key += fmt.Sprint(" ", at)
	for _, c := range g.calls {
		i, same := slices.BinarySearchFunc(list.calls, c.rows[0], func(o instance, row int32) int { return cmp.Compare(o.rows[0], row) })
		if !same {
			i--
		}
		if i < 0 {
			continue
		}
		if o := &list.calls[i]; o.ordinal == at && o.pass == c.pass && c.rows[0] <= o.rows[len(o.rows)-1] {
			c.ordinal = 0
			out.calls = append(out.calls, c)
		}
	}
	d.number(&out)
	return out
}

// numbered are the lists of names that differ in the number that they end with, by name: of several that a function calls one after
// another each is of such a name. It is nil where that is not so, or functions of several models do, and empty where there are not so
// many.
func (d *draft) numbered(kept []keeper, c *Change, names []string) map[string][]keeper {
	first, most := counted(names)
	if first < 0 {
		return nil
	}
	least := min(first, 1)
	of := map[string][]keeper{}
	for _, k := range kept {
		key := fmt.Sprint(k.around[d.lineOfModule(k.around)+1:])
		of[key] = append(of[key], k)
	}
	var found []keeper
	short := false // there are not so many anywhere
	for _, lists := range of {
		switch {
		case len(lists) < 2:
		case len(lists) < most-least:
			short = true
		case found != nil:
			return nil
		default:
			found = lists
		}
	}
	if found == nil {
		lists := 0
		for _, k := range kept {
			switch stages := d.stagesOf(k); {
			case len(stages) > 0 && len(stages) >= most-least:
				found = stages
				lists++
			case stages != nil:
				short = true
			}
		}
		if lists > 1 {
			return nil
		}
	}
	if found == nil && short && first > 1 && most-first == len(names)-1 {
		if found = d.asManyStages(kept, len(names)); found != nil {
			least = first
		}
	}
	switch {
	case found == nil && short:
		return map[string][]keeper{}
	case found == nil:
		return nil
	}
	if most-least == len(found) && least > 0 {
		least++ // what comes first has another name
	}
	out := map[string][]keeper{}
	for _, name := range names {
		_, n := numberOf(name)
		if n < least || n-least >= len(found) {
			return map[string][]keeper{}
		}
		of := found[n-least]
		if itself := func(m modules) bool { return m.name == name && !m.within }; slices.ContainsFunc(c.modules, itself) {
			of.group = d.whole(of.group)
			of.also = slices.Clone(of.also)
			for i := range of.also {
				of.also[i].group = d.whole(of.also[i].group)
			}
		}
		out[name] = []keeper{of}
	}
	return out
}

// asManyStages are the stages of the one list that has so many, nil where none has, or several: where names count from a later number on,
// those before it are called elsewhere, and may not be trained, as the first ones of a backbone.
func (d *draft) asManyStages(kept []keeper, many int) (found []keeper) {
	for _, k := range kept {
		stages := d.stagesOf(k)
		switch {
		case len(stages) != many:
		case found != nil:
			return nil
		default:
			found = stages
		}
	}
	return found
}

// whole is a list of modules as one module.
func (d *draft) whole(list group) group {
	var calls []instance
	for _, c := range list.calls {
		if c.ordinal == 0 {
			c.rows = slices.Clone(c.rows)
			calls = append(calls, c)
			continue
		}
		last := &calls[len(calls)-1]
		last.rows = append(last.rows, c.rows...)
	}
	list.calls, list.most, list.bodies = calls, 0, nil
	d.number(&list)
	return list
}

// stagesOf are the parts of a list that each stage of a network has, as far as these are seen to begin, or their blocks tell; nil where
// nothing tells of any.
func (d *draft) stagesOf(list keeper) (parts []keeper) {
	stages := list.outer
	if stages == nil || stages.most >= list.most {
		stages = list.staged
	}
	if stages == nil {
		stages = d.sized(&list.group)
	}
	if stages == nil {
		return nil
	}
	for at := range stages.most {
		part := d.in(&list.group, stages, at)
		if len(part.calls) == 0 {
			continue // what comes before the first block
		}
		part.outer, part.staged = nil, nil
		parts = append(parts, keeper{group: part})
	}
	for _, other := range list.also {
		for at, part := range d.stagesOf(other) {
			if at < len(parts) {
				parts[at].also = append(parts[at].also, part)
			}
		}
	}
	return parts
}

// numberOf takes a name apart that ends with a number, -1 for one that does not.
func numberOf(name string) (stem string, n int) {
	stem = strings.TrimRightFunc(name, unicode.IsDigit)
	n, err := strconv.Atoi(name[len(stem):])
	if err != nil || stem == "" || strings.HasSuffix(stem, ".") {
		return "", -1
	}
	return stem, n
}

// counted are the least and the largest of the numbers that names end with which differ in nothing else, -1 for others.
func counted(names []string) (first, last int) {
	stem, first := numberOf(names[0])
	last = first
	for _, name := range names[1:] {
		s, n := numberOf(name)
		if n < 0 || s != stem {
			return -1, -1
		}
		first, last = min(first, n), max(last, n)
	}
	return first, last
}
