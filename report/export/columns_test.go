package export

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type mixedRow struct {
	Number  int64    `parquet:"number"`
	Rising  int64    `parquet:"rising,delta"`
	Small   int32    `parquet:"small"`
	Address *uint64  `parquet:"address,optional"`
	Maybe   *int64   `parquet:"maybe,optional"`
	Step    *int32   `parquet:"step,optional"`
	Share   float64  `parquet:"share"`
	Part    *float64 `parquet:"part,optional"`
	Kind    string   `parquet:"kind,dict"`
	Pool    *string  `parquet:"pool,optional,dict"`
	Text    string   `parquet:"text"`
	Note    *string  `parquet:"note,optional"`
	Leaked  bool     `parquet:"leaked"`
	Live    *bool    `parquet:"live,optional"`
}

// TestColumns holds what is written against another reader of the format: runs and noise, extremes, nothing, and more
// rows than a group has.
func TestColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 127, 128, 129, 130, 1000, 4097, rowsGroup + 3} {
		rows, run := make([]mixedRow, n), 0
		for i := range rows {
			row := &rows[i]
			if run--; i > 0 && run > 0 { // the same again
				*row = rows[i-1]
				continue
			}
			if r.IntN(4) == 0 {
				run = r.IntN(40)
			}
			number := func() int64 { return int64(r.Uint64() >> r.IntN(64)) }
			words := []string{"", "a", "ü", "model.py:39 forward", "\x00"}
			*row = mixedRow{Number: number(), Rising: number(), Small: int32(number()), Share: r.Float64(),
				Kind: words[r.IntN(len(words))], Text: words[r.IntN(len(words))], Leaked: r.IntN(2) == 0}
			if r.IntN(3) > 0 {
				row.Address, row.Maybe, row.Step, row.Part = new(r.Uint64()), new(number()), new(int32(number())), new(r.Float64())
			}
			if r.IntN(3) > 0 {
				row.Pool, row.Note, row.Live = new(words[r.IntN(len(words))]), new(words[r.IntN(len(words))]), new(r.IntN(2) == 0)
			}
		}
		var b bytes.Buffer
		w, err := newTableWriter(&b, reflect.TypeFor[mixedRow]())
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := w.add(reflect.ValueOf(&rows[i]).Elem()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		got, err := parquet.Read[mixedRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if !slices.EqualFunc(got, rows, func(a, b mixedRow) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%d rows come back as %d others", n, len(got))
		}
	}
}

func TestColumnsRefuse(t *testing.T) {
	if _, err := newTableWriter(new(bytes.Buffer), reflect.TypeFor[struct {
		A []int `parquet:"a"`
	}]()); err == nil {
		t.Error("a list is taken for a column")
	}
}
