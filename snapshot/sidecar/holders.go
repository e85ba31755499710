package sidecar

// StringID is an index into a Holders' strings; 0 is "".
type StringID uint32

// Holders is the graph of Python objects and autograd nodes through which the tensors on
// devices were reached at one moment. Columns of a table are equally long, and all indexes in
// them are valid.
type Holders struct {
	Time      int64
	ID        *int64
	Step      *int64
	Reason    string // "dump", "oom", "exit" or "exception"
	Duration  *int64 // nanoseconds that taking it cost
	Objects   *int64 // tracked objects that were looked at
	Collected *int64 // of them unreachable
	Strings   []string
	Storages  StorageColumns
	Tensors   TensorColumns
	Nodes     NodeColumns
	Edges     EdgeColumns
	Bounds    BoundColumns
	Dropped   map[string]int64 // what a limit cut
	Notes     []string
}

// StorageColumns are the storages on devices; device -1 is host memory.
type StorageColumns struct {
	Device  []int32
	Address []uint64
	Bytes   []int64 // as the storage says: requested
}

// Len is the number of storages.
func (c *StorageColumns) Len() int { return len(c.Address) }

// TensorColumns are the tensors on them.
type TensorColumns struct {
	Node    []uint32
	Storage []uint32
	Shape   []StringID // "8x128x512"
	DType   []StringID // "float32"
	Flags   []TensorFlags
	Offset  []int64 // bytes into the storage
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
	Kind  []StringID
	Type  []StringID // qualified class name
	Name  []StringID // of a function, frame or module
	File  []StringID
	Line  []int32    // 0 unknown
	Root  []StringID // "" for what is no root
	Cycle []int64    // number of the unreachable cycle that it is in, 0 for none
}

// Len is the number of nodes.
func (c *NodeColumns) Len() int { return len(c.Kind) }

// EdgeColumns say which node refers to which. FORMAT.md lists the words of Kind.
type EdgeColumns struct {
	From, To []uint32
	Kind     []StringID
	Label    []StringID
}

// Len is the number of edges.
func (c *EdgeColumns) Len() int { return len(c.From) }

// BoundColumns are the containers that have a bound.
type BoundColumns struct {
	Node          []uint32
	Length, Limit []int64    // entries now and at most
	Hint          []StringID // attribute that the bound was read from; "" is one that the container keeps to itself
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
