package oomlog

import (
	"slices"
	"strings"
	"testing"
)

// checkLedger holds that the rows add up.
func checkLedger(t *testing.T, m *Message) {
	t.Helper()
	l := m.Ledger()
	if l == nil {
		return
	}
	sum := int64(0)
	for _, r := range l.Rows {
		sum += r.Bytes
	}
	if sum != m.Total.Bytes || l.Total != m.Total.Bytes {
		t.Errorf("rows sum to %d of %d: %+v", sum, m.Total.Bytes, l)
	}
}

func TestLedger(t *testing.T) {
	_, texts := cases(t)
	for _, text := range append(texts, real(t)...) {
		for _, m := range collect(t, text) {
			checkLedger(t, &m)
		}
	}
	head := "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 2.00 GiB is free. "
	tail := "Of the allocated memory 3.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
	const gib = 1 << 30
	for _, c := range []struct {
		text    string
		want    []LedgerRow
		guessed int64
	}{
		{head + "Including non-PyTorch memory, this process has 5.00 GiB memory in use. Process 7 has 8.00 GiB memory in use. " + tail, []LedgerRow{
			{RowFree, 2 * gib, false}, {RowOthers, 8 * gib, false}, {RowNonPyTorch, gib, true}, {RowAllocated, 3 * gib, false},
			{RowUnallocated, gib, false}, {RowResidual, gib, true}}, 0},
		{head + "Process 7 has 14.00 GiB memory in use. " + tail, []LedgerRow{ // a container
			{RowFree, 2 * gib, false}, {RowNonPyTorch, 10 * gib, true}, {RowAllocated, 3 * gib, false}, {RowUnallocated, gib, false}, {RowResidual, 0, true}}, 7},
		{head + "Process 7 has 5.00 GiB memory in use. Process 8 has 9.00 GiB memory in use. Process 9 has 2.00 GiB memory in use. " + tail, []LedgerRow{
			{RowFree, 2 * gib, false}, {RowForeign, 10 * gib, true}, {RowAllocated, 3 * gib, false}, {RowUnallocated, gib, false}}, 0},
		{head + "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. " + tail, []LedgerRow{
			{RowFree, 2 * gib, false}, {RowForeign, 10 * gib, true}, {RowAllocated, 3 * gib, false}, {RowUnallocated, gib, false}}, 0},
		{head, []LedgerRow{{RowFree, 2 * gib, false}, {RowForeign, 14 * gib, true}}, 0},
		{"CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 16.00 GiB total capacity; 3.00 GiB already allocated; 2.00 GiB free; 4.00 GiB reserved in total by PyTorch)", []LedgerRow{
			{RowFree, 2 * gib, false}, {RowForeign, 10 * gib, true}, {RowAllocated, 3 * gib, false}, {RowUnallocated, gib, true}}, 0},
		{"CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 16.00 GiB total capacity; 3.00 GiB already allocated; 2.00 GiB free; 1.00 GiB cached)", []LedgerRow{
			{RowFree, 2 * gib, false}, {RowForeign, 10 * gib, true}, {RowAllocated, 3 * gib, false}, {RowUnallocated, gib, false}}, 0},
	} {
		m := collect(t, c.text)[0]
		l := m.Ledger()
		if l == nil || !slices.Equal(l.Rows, c.want) || l.Guessed != c.guessed {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, l, c.want)
		}
	}
	if m := collect(t, "CUDA out of memory. Tried to allocate 1.00 GiB")[0]; m.Ledger() != nil {
		t.Error("a ledger without a total")
	}
}

func TestSpilled(t *testing.T) {
	for reserved, want := range map[string]bool{"8.00": false, "8.01": false, "9.00": true} {
		m := collect(t, "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity; 3.00 GiB already allocated; 0 bytes free; "+reserved+" GiB reserved in total by PyTorch)")[0]
		if m.Spilled() != want {
			t.Errorf("%s GiB reserved: %v", reserved, m.Spilled())
		}
	}
}

func TestSegmentSize(t *testing.T) {
	const mib = 1 << 20
	for request, want := range map[int64]int64{
		512: 2 * mib, mib: 2 * mib, mib + 512: 20 * mib, 10*mib - 512: 20 * mib, 10 * mib: 10 * mib, 10*mib + 512: 12 * mib, 512 * mib: 512 * mib,
	} {
		if got := SegmentSize(request); got != want {
			t.Errorf("%d: %d, want %d", request, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	const mib = 1 << 20
	m := collect(t, "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 1024.00 MiB of which 8.00 MiB is free. Of the allocated memory 700.00 MiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.")[0]
	events := []Event{
		{Device: 0, Index: 1, Requested: 5 * mib, Free: 8 * mib, Reserved: 800 * mib, Allocated: 700 * mib},
		{Device: 1, Index: 2, Requested: 5 * mib, Free: 8 * mib, Reserved: 900 * mib, Allocated: 700*mib + 4000},
		{Device: 1, Index: 3, Requested: 5 * mib, Free: -1, Reserved: 900 * mib, Allocated: 600 * mib},
		{Device: 1, Index: 4, Requested: 12 * mib, Free: 8 * mib, Reserved: 800 * mib, Allocated: 700 * mib},
	}
	got := m.Match(events)
	if got.Event.Index != 2 || !got.Same {
		t.Fatalf("matched %+v", got)
	}
	want := map[string]bool{"requested": true, "free": true, "reserved": false, "allocated": true, "unallocated": false}
	for _, f := range got.Figures {
		if agree, ok := want[f.Name]; !ok || agree != f.Agree {
			t.Errorf("%+v", f)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not compared: %v", want)
	}
	if got := m.Match(events[3:]); got == nil || got.Same {
		t.Errorf("another size: %+v", got)
	}
	if got := m.Match(nil); got != nil {
		t.Errorf("no events: %+v", got)
	}
	other := collect(t, "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB already allocated; 0 bytes free; 7.00 GiB reserved in total by PyTorch)")[0]
	var log Log
	log.Add(other)
	log.Add(m)
	if r := NewReport("log", log, "s.pickle", events); r.Main != log.Groups[1] || !r.Match.Same {
		t.Errorf("the report is about %s", r.Main.facts())
	}
	if r := NewReport("log", log, "", nil); r.Main != log.Groups[0] || r.Match != nil {
		t.Errorf("without a snapshot: %+v", r)
	}
}

func TestLog(t *testing.T) {
	var log Log
	add := func(text string) {
		for _, m := range collect(t, text) {
			log.Add(m)
		}
	}
	line := "CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 3.79 GiB total capacity; 654.97 MiB already allocated; 6.00 MiB free; 666.00 MiB reserved in total by PyTorch)\n"
	add("RuntimeError: CUDA error: out of memory\n")
	add("[rank5]: RuntimeError: " + line + "[rank1]: " + wrapAt(line, 30, "[rank1]: ") + "rank 1: " + line)
	if len(log.Groups) != 2 || log.Messages != 4 {
		t.Fatalf("%d groups, %d messages", len(log.Groups), log.Messages)
	}
	g := log.Groups[1]
	if log.Main() != g || g.Count != 3 || !slices.Equal(g.Ranks, []int{1, 5}) || g.Line != 1 || g.LastLine <= 2 {
		t.Errorf("%+v", g)
	}
	for i := range maxGroups + 10 {
		m := log.Groups[0].Message
		m.Text = strings.Repeat("x", i)
		log.Add(m)
	}
	if len(log.Groups) != maxGroups || log.Dropped != 12 {
		t.Errorf("%d groups, %d dropped", len(log.Groups), log.Dropped)
	}
}
