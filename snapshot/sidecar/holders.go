package sidecar

// StringID is an index into a Holders' strings; 0 is "".
type StringID uint32

// Holders is the graph of Python objects and autograd nodes through which the tensors on
// devices were reached at one moment. Columns of a table are equally long, and all indexes in
// them are valid.
type Holders struct {
	Time      int64            `msgpack:"time"`
	ID        *int64           `msgpack:"id"`
	Step      *int64           `msgpack:"step"`
	Reason    string           `msgpack:"reason"`    // "dump", "oom", "exit" or "exception"
	Duration  *int64           `msgpack:"duration"`  // nanoseconds that taking it cost
	Objects   *int64           `msgpack:"objects"`   // tracked objects that were looked at
	Collected *int64           `msgpack:"collected"` // of them unreachable
	Strings   []string         `msgpack:"strings"`
	Storages  StorageColumns   `msgpack:"storages"`
	Tensors   TensorColumns    `msgpack:"tensors"`
	Nodes     NodeColumns      `msgpack:"nodes"`
	Edges     EdgeColumns      `msgpack:"edges"`
	Bounds    BoundColumns     `msgpack:"bounds"`
	Dropped   map[string]int64 `msgpack:"dropped"` // what a limit cut
	Notes     []string         `msgpack:"notes"`
}

// StorageColumns are the storages on devices; device -1 is host memory.
type StorageColumns struct {
	Device  []int32  `msgpack:"device" min:"-1"`
	Address []uint64 `msgpack:"address"`
	Bytes   []int64  `msgpack:"bytes" min:"0"` // as the storage says: requested
}

// Len is the number of storages.
func (c *StorageColumns) Len() int { return len(c.Address) }

// TensorColumns are the tensors on them.
type TensorColumns struct {
	Node    []uint32      `msgpack:"node"`
	Storage []uint32      `msgpack:"storage"`
	Shape   []StringID    `msgpack:"shape"` // "8x128x512"
	DType   []StringID    `msgpack:"dtype"` // "float32"
	Flags   []TensorFlags `msgpack:"flags"`
	Offset  []int64       `msgpack:"offset" min:"0"` // bytes into the storage
}

// Len is the number of tensors.
func (c *TensorColumns) Len() int { return len(c.Node) }

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
	Type  []StringID `msgpack:"type"` // qualified class name
	Name  []StringID `msgpack:"name"` // of a function, frame or module
	File  []StringID `msgpack:"file"`
	Line  []int32    `msgpack:"line" min:"0"`  // 0 unknown
	Root  []StringID `msgpack:"root"`          // "" for what is no root
	Cycle []int64    `msgpack:"cycle" min:"0"` // number of the unreachable cycle that it is in, 0 for none
}

// Len is the number of nodes.
func (c *NodeColumns) Len() int { return len(c.Kind) }

// EdgeColumns say which node refers to which. FORMAT.md lists the words of Kind.
type EdgeColumns struct {
	From  []uint32   `msgpack:"from"`
	To    []uint32   `msgpack:"to"`
	Kind  []StringID `msgpack:"kind"`
	Label []StringID `msgpack:"label"`
}

// Len is the number of edges.
func (c *EdgeColumns) Len() int { return len(c.From) }

// BoundColumns are the containers that have a bound.
type BoundColumns struct {
	Node   []uint32 `msgpack:"node"`
	Length []int64  `msgpack:"length" min:"0"` // entries now
	Limit  []int64  `msgpack:"limit" min:"0"`  // and at most
	// Hint is the attribute that the bound was read from; "" is one that the container keeps to itself.
	Hint []StringID `msgpack:"hint"`
}

// Len is the number of bounds.
func (c *BoundColumns) Len() int { return len(c.Node) }

// String gives the text of an index.
func (h *Holders) String(id StringID) string {
	if id == 0 {
		return ""
	}
	return h.Strings[id]
}
