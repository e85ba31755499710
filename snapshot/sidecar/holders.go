package sidecar

import (
	"fmt"
	"reflect"
	"strings"
)

// StringID is an index into a Holders' strings; 0 is "".
type StringID uint32

// Holders is the graph of Python objects and autograd nodes through which the tensors on
// devices were reached at one moment. Columns of a table are as long as its first, and all indexes in
// them are valid: those of strings, and those of the table that the tag of says. A column that may be
// left out is zeros then.
type Holders struct {
	Time      int64            `msgpack:"time"`
	ID        *int64           `msgpack:"id"`
	Step      *int64           `msgpack:"step"`
	Reason    string           `msgpack:"reason"`     // "dump", "oom", "exit" or "exception"
	Duration  *int64           `msgpack:"duration"`   // nanoseconds that taking it cost
	Objects   *int64           `msgpack:"objects"`    // tracked objects that were looked at
	Collected *int64           `msgpack:"collected"`  // of them unreachable
	Live      *int64           `msgpack:"live"`       // bytes that torch had allocated on all devices
	Peak      *int64           `msgpack:"peak"`       // and the most of that until then, each device by itself
	HostEvery *int64           `msgpack:"host_every"` // one tensor in host memory stands for so many; nil means 1
	Strings   []string         `msgpack:"strings"`
	Storages  StorageColumns   `msgpack:"storages"`
	Tensors   TensorColumns    `msgpack:"tensors"`
	Nodes     NodeColumns      `msgpack:"nodes"`
	Edges     EdgeColumns      `msgpack:"edges"`
	Bounds    BoundColumns     `msgpack:"bounds"`
	Numbers   NumberColumns    `msgpack:"numbers"`
	Dropped   map[string]int64 `msgpack:"dropped"` // what a limit cut
	Notes     []string         `msgpack:"notes"`
}

// StorageColumns are the storages on devices; device -1 is host memory.
type StorageColumns struct {
	Address []uint64 `msgpack:"address"`
	Device  []int32  `msgpack:"device" min:"-1"`
	Bytes   []int64  `msgpack:"bytes" min:"0"` // as the storage says: requested
	// Kind says what sort of host memory it is: HostPinned, HostShared, HostMapped, or "" for others.
	Kind []StringID `msgpack:"kind,omitempty"`
}

// The kinds of storages in host memory.
const (
	HostPinned = "pinned"
	HostShared = "shared" // with other processes
	HostMapped = "mapped" // from a file
)

// TensorColumns are the tensors on them.
type TensorColumns struct {
	Node    []uint32      `msgpack:"node" of:"nodes"`
	Storage []uint32      `msgpack:"storage" of:"storages"`
	Shape   []StringID    `msgpack:"shape,omitempty"` // "8x128x512"
	DType   []StringID    `msgpack:"dtype,omitempty"` // "float32"
	Flags   []TensorFlags `msgpack:"flags,omitempty"`
	Offset  []int64       `msgpack:"offset,omitempty" min:"0"` // bytes into the storage
}

// TensorFlags say what a tensor is.
type TensorFlags uint8

// The flags of a tensor.
const (
	RequiresGrad TensorFlags = 1 << iota
	Leaf
	View
	Parameter
	Saved // seen only as a saved tensor of the autograd graph: no Python object
)

// NodeColumns are the objects. FORMAT.md lists the words of Kind and Root.
type NodeColumns struct {
	Kind  []StringID `msgpack:"kind"`
	Type  []StringID `msgpack:"type,omitempty"` // qualified class name
	Name  []StringID `msgpack:"name,omitempty"` // of a function, frame or module
	File  []StringID `msgpack:"file,omitempty"`
	Line  []int32    `msgpack:"line,omitempty" min:"0"`  // 0 unknown
	Root  []StringID `msgpack:"root,omitempty"`          // "" for what is no root
	Cycle []int64    `msgpack:"cycle,omitempty" min:"0"` // number of the unreachable cycle that it is in, 0 for none
}

// EdgeColumns say which node refers to which. FORMAT.md lists the words of Kind.
type EdgeColumns struct {
	From  []uint32   `msgpack:"from" of:"nodes"`
	To    []uint32   `msgpack:"to" of:"nodes"`
	Kind  []StringID `msgpack:"kind"`
	Label []StringID `msgpack:"label,omitempty"`
}

// BoundColumns are the containers that have a bound.
type BoundColumns struct {
	Node   []uint32 `msgpack:"node" of:"nodes"`
	Length []int64  `msgpack:"length" min:"0"` // entries now
	Limit  []int64  `msgpack:"limit" min:"0"`  // and at most
	// Hint is the attribute that the bound was read from; "" is one that the container keeps to itself.
	Hint []StringID `msgpack:"hint,omitempty"`
}

// NumberColumns are integers that may bound what is beside them: of the objects that have containers and of the functions
// that run, by the name of the attribute or variable, "len NAME" for the entries of another container there; of
// containers "len()", their own entries, and "None", how many entries of a list that ends in None are None.
type NumberColumns struct {
	Node  []uint32   `msgpack:"node" of:"nodes"`
	Name  []StringID `msgpack:"name"`
	Value []int64    `msgpack:"value" min:"0"`
}

// Uses are how the text of a program uses what keeps memory, by the names of variables and attributes. FORMAT.md lists
// the words of How. Its columns are equally long.
type Uses struct {
	Time  int64 `msgpack:"time"`
	Whole bool  `msgpack:"whole"` // all files of the program were read
	// Name is that of a variable, where Attribute is 1 that of an attribute of any object; Left and Right are the sides
	// of a bound.
	Name      []string `msgpack:"name"`
	Attribute []int64  `msgpack:"attribute" min:"0"`
	How       []string `msgpack:"how"`
	Function  []string `msgpack:"function"`
	File      []string `msgpack:"file"`
	Line      []int64  `msgpack:"line" min:"0"`
	Left      []string `msgpack:"left"`
	Right     []string `msgpack:"right"`
}

// check says what is wrong.
func (u *Uses) check(*cursor) string {
	n := len(u.Name)
	for _, column := range []int{len(u.Attribute), len(u.How), len(u.Function), len(u.File), len(u.Line), len(u.Left),
		len(u.Right)} {
		if column != n {
			return fmt.Sprintf("uses have columns of %d and of %d entries", n, column)
		}
	}
	return ""
}

// String gives the text of an index.
func (h *Holders) String(id StringID) string {
	if id == 0 {
		return ""
	}
	return h.Strings[id]
}

// Every is for how many storages one in the table stands: more than 1 in host memory where only some were recorded.
func (h *Holders) Every(storage int) int64 {
	if h.HostEvery == nil || h.Storages.Device[storage] >= 0 {
		return 1
	}
	return min(max(*h.HostEvery, 1), 1<<20)
}

// check holds the tables against what the tags of their columns say, and fills the columns that were left
// out. It says what is wrong.
func (h *Holders) check(*cursor) string {
	if len(h.Strings) > 0 && h.Strings[0] != "" {
		return fmt.Sprintf("strings[0] is %.40q, not empty", h.Strings[0])
	}
	rows := map[string]int{}
	for t, table := range reflect.ValueOf(h).Elem().Fields() {
		if t.Type.Kind() == reflect.Struct {
			rows[t.Tag.Get("msgpack")] = table.Field(0).Len()
		}
	}
	for t, table := range reflect.ValueOf(h).Elem().Fields() {
		if t.Type.Kind() != reflect.Struct {
			continue
		}
		of := t.Tag.Get("msgpack")
		for f, col := range table.Fields() {
			key, option, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
			name, n := of+"."+key, rows[of]
			if option == "omitempty" && col.IsNil() {
				col.Set(reflect.MakeSlice(f.Type, n, n))
			}
			if col.Len() != n {
				return fmt.Sprintf("%s has %d entries, the table has %d", name, col.Len(), n)
			}
			msg := ""
			switch ids := col.Interface().(type) {
			case []StringID:
				msg = below(name, ids, max(1, len(h.Strings)))
			case []uint32:
				msg = below(name, ids, rows[f.Tag.Get("of")])
			}
			if msg != "" {
				return msg
			}
		}
	}
	devices := map[int32]bool{}
	for _, d := range h.Storages.Device {
		if devices[d] = true; len(devices) > maxDevices {
			return fmt.Sprintf("storages on more than %d devices", maxDevices)
		}
	}
	return ""
}

// maxDevices is far above what one process can have.
const maxDevices = 1024

func below[T ~uint32](name string, col []T, n int) string {
	for i, v := range col {
		if int64(v) >= int64(n) {
			return fmt.Sprintf("%s[%d] is %d, of %d", name, i, v, n)
		}
	}
	return ""
}
