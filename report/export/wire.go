package export

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// valid is a text in UTF-8, which all formats demand: paths of Python may have bytes that are none.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// message is a message of protocol buffers in the making. Fields without a value are left out, as proto3 has it.
type message []byte

func (m *message) number(field protowire.Number, v uint64) {
	if v != 0 {
		m.always(field, v)
	}
}

func (m *message) always(field protowire.Number, v uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), v)
}

func (m *message) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), valid(s))
}

func (m *message) message(field protowire.Number, v message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

// packed writes numbers as one field.
func (m *message) packed(field protowire.Number, list []uint64) {
	var b message
	for _, v := range list {
		b = protowire.AppendVarint(b, v)
	}
	m.message(field, b)
}
