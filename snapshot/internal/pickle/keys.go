package pickle

import "github.com/snapana/snapana/snapshot"

// The vocabulary of the format is interned first, in this order, so that a key's string id
// is its constant here. Keys come first: their ids index bit masks.
const (
	keyAction = iota + 1
	keyAddr
	keySize
	keyStream
	keyTimeUS
	keyFrames
	keyDeviceFree
	keyCompileContext
	keyUserMetadata
	keyForwardFrames
	keyPoolID
	keyInternalMetadata
	keyCategory
	keyCppFrames
	keyDevice
	keyAddress
	keyTotalSize
	keyAllocatedSize
	keyActiveSize
	keyRequestedSize
	keySegmentType
	keySegmentPoolID
	keyIsExpandable
	keyBlocks
	keyState
	keyHistory
	keyRealSize
	keyFilename
	keyLine
	keyName
	keyFXOp
	keyFXName
	keyFXTarget
	keyFXTrace
	keyStage
	keySegments
	keyDeviceTraces
	keyTraces
	keyAllocatorSettings
	keyExternalAnnotations
	keyHostSegments
	keyHostTraces
	keyAllocated
	keyActive
	keyOwnerPoolID
	numKeys

	wordSmall = iota
	wordLarge
	wordActiveAllocated
	wordActivePendingFree
	wordActiveAwaitingFree // in torch's docstrings only, read as pending free
	wordInactive
	wordStart
	wordEnd
	wordActions // the first action; the others follow
)

var vocabulary = []string{
	"action", "addr", "size", "stream", "time_us", "frames", "device_free", "compile_context", "user_metadata",
	"forward_frames", "pool_id", "internal_metadata", "category", "cpp_frames",
	"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "segment_type",
	"segment_pool_id", "is_expandable", "blocks", "state", "history", "real_size",
	"filename", "line", "name", "fx_node_op", "fx_node_name", "fx_node_target", "fx_original_trace",
	"stage", "segments", "device_traces", "traces", "allocator_settings", "external_annotations",
	"host_segments", "host_traces", "allocated", "active", "owner_private_pool_id",
	"small", "large", "active_allocated", "active_pending_free", "active_awaiting_free", "inactive", "START", "END",
}

// bit is the mask of a key.
func bit(key int) uint64 { return 1 << key }

func internVocabulary(t *snapshot.Strings) {
	for _, w := range vocabulary {
		t.Intern([]byte(w))
	}
	for a := snapshot.Alloc; a < snapshot.NumActions; a++ {
		t.Intern([]byte(a.String()))
	}
}

// action reads an action's string id.
func action(id uint64) snapshot.Action {
	if id < wordActions || id >= wordActions+uint64(snapshot.NumActions)-1 {
		return snapshot.ActionUnknown
	}
	return snapshot.Action(id - wordActions + 1)
}
