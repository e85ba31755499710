package timeline

// table maps addresses to rows by open addressing. Address 0 is no key.
type table struct {
	keys  []uint64
	rows  []int32
	n     int
	shift uint8 // 64 minus log2 of the length
}

func newTable(expect int) *table {
	bits := uint8(8)
	for 1<<bits < 2*expect && bits < 30 {
		bits++
	}
	return &table{keys: make([]uint64, 1<<bits), rows: make([]int32, 1<<bits), shift: 64 - bits}
}

func (t *table) slot(key uint64) int { return int(key * 0x9e3779b97f4a7c15 >> t.shift) }

// get gives the row of key, false when it has none.
func (t *table) get(key uint64) (int32, bool) {
	mask := len(t.keys) - 1
	for i := t.slot(key); t.keys[i] != 0; i = (i + 1) & mask {
		if t.keys[i] == key {
			return t.rows[i], true
		}
	}
	return 0, false
}

// at is where the row of key is, nil when it has none, up to the next change of the table.
func (t *table) at(key uint64) *int32 {
	mask := len(t.keys) - 1
	for i := t.slot(key); t.keys[i] != 0; i = (i + 1) & mask {
		if t.keys[i] == key {
			return &t.rows[i]
		}
	}
	return nil
}

// put sets the row of key, which must not be 0.
func (t *table) put(key uint64, row int32) {
	mask := len(t.keys) - 1
	i := t.slot(key)
	for ; t.keys[i] != 0; i = (i + 1) & mask {
		if t.keys[i] == key {
			t.rows[i] = row
			return
		}
	}
	t.keys[i], t.rows[i] = key, row
	t.n++
	if 2*t.n > len(t.keys) {
		t.grow()
	}
}

func (t *table) grow() {
	old := *t
	t.keys, t.rows = make([]uint64, 2*len(old.keys)), make([]int32, 2*len(old.keys))
	t.shift--
	t.n = 0
	for i, key := range old.keys {
		if key != 0 {
			t.put(key, old.rows[i])
		}
	}
}

// drop takes key out, moving later entries of its run back so that lookups need no marks.
func (t *table) drop(key uint64) {
	mask := len(t.keys) - 1
	i := t.slot(key)
	for ; t.keys[i] != key; i = (i + 1) & mask {
		if t.keys[i] == 0 {
			return
		}
	}
	t.n--
	for j := (i + 1) & mask; t.keys[j] != 0; j = (j + 1) & mask {
		if home := t.slot(t.keys[j]); (j-home)&mask >= (j-i)&mask {
			t.keys[i], t.rows[i] = t.keys[j], t.rows[j]
			i = j
		}
	}
	t.keys[i] = 0
}
