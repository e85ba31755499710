package fit

import (
	"math/rand/v2"
	"testing"
	"unicode"
)

// TestAlign compares with the longest common subsequence, found by the book.
func TestAlign(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		a, b := make([]int, rng.IntN(30)), make([]int, rng.IntN(30))
		for i := range a {
			a[i] = rng.IntN(4)
		}
		for i := range b {
			b[i] = rng.IntN(4)
		}
		lcs := make([][]int, len(a)+1)
		for i := range lcs {
			lcs[i] = make([]int, len(b)+1)
		}
		for i := range a {
			for j := range b {
				lcs[i+1][j+1] = max(lcs[i][j+1], lcs[i+1][j])
				if a[i] == b[j] {
					lcs[i+1][j+1] = lcs[i][j] + 1
				}
			}
		}
		n, li, lj := 0, -1, -1
		align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }, func(i, j int) {
			if i <= li || j <= lj || a[i] != b[j] {
				t.Fatalf("%v %v: pair %d %d after %d %d", a, b, i, j, li, lj)
			}
			n, li, lj = n+1, i, j
		})
		if n != lcs[len(a)][len(b)] {
			t.Fatalf("%v and %v: %d pairs, want %d", a, b, n, lcs[len(a)][len(b)])
		}
	}
}

// TestAlignFar aligns sequences that differ in more than is looked over at once.
func TestAlignFar(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var a, b []int
	for i := range 20000 {
		a = append(a, i)
		if rng.IntN(4) > 0 {
			b = append(b, i)
		}
	}
	n := 0
	align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }, func(i, j int) { n++ })
	if n < len(b)-len(b)/1000 {
		t.Errorf("%d pairs of %d", n, len(b))
	}
}

// TestSlide has what only one sequence has where the pairs around it are good.
func TestSlide(t *testing.T) {
	a, b := []rune("emb abc abc head"), []rune("emb abc abc abc head")
	letter := func(r rune) bool { return r != ' ' }
	same := func(i, j int) bool { return letter(a[i]) == letter(b[j]) } // as requests of one line, whatever their sizes
	good := func(i, j int) bool { return a[i] == b[j] }
	pairs := [][2]int{}
	align(len(a), len(b), same, func(i, j int) { pairs = append(pairs, [2]int{i, j}) })
	slide(pairs, len(a), len(b), same, good)
	for k, p := range pairs {
		if !good(p[0], p[1]) || k > 0 && (p[0] <= pairs[k-1][0] || p[1] <= pairs[k-1][1]) {
			t.Errorf("%d is paired with %d", p[0], p[1])
		}
	}
	if len(pairs) != len(a) {
		t.Errorf("%d pairs of %d", len(pairs), len(a))
	}
}

// TestGather has a loop's passes that only one sequence has in one place: not around what is like the last of them.
func TestGather(t *testing.T) {
	a, b := []rune("ab abxabxabX"), []rune("ab abX")
	same := func(i, j int) bool { return unicode.ToLower(a[i]) == unicode.ToLower(b[j]) }
	good := func(i, j int) bool { return a[i] == b[j] }
	pairs := [][2]int{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {8, 5}}
	gather(pairs, len(a), len(b), same, good)
	if want := [2]int{11, 5}; pairs[5] != want {
		t.Errorf("the last pair is %v, want %v", pairs[5], want)
	}
	pairs[5] = [2]int{5, 8}
	swap := func(f func(i, j int) bool) func(i, j int) bool { return func(i, j int) bool { return f(j, i) } }
	if gather(pairs, len(b), len(a), swap(same), swap(good)); pairs[5] != [2]int{5, 11} {
		t.Errorf("the last pair is %v the other way about", pairs[5])
	}
}
