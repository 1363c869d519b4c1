package kv

import (
	"fmt"
	"strings"
)

// EventKind says what happened to registered blocks.
type EventKind uint8

// The kinds of event, as vLLM's KV events name them.
const (
	BlockStored EventKind = iota + 1
	BlockRemoved
	AllBlocksCleared
)

// String returns vLLM's tag of the event.
func (k EventKind) String() string {
	switch k {
	case BlockStored:
		return "BlockStored"
	case BlockRemoved:
		return "BlockRemoved"
	case AllBlocksCleared:
		return "AllBlocksCleared"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event tells a router what the prefix cache gained or lost. It is a value: nobody changes it afterwards.
type Event struct {
	Kind      EventKind
	Group     int     // cache group
	Hashes    []Hash  // of the blocks, in order; one for BlockRemoved, none for AllBlocksCleared
	Parent    Hash    // BlockStored: hash before the first block, when HasParent
	HasParent bool    // BlockStored: false if the first block begins the sequence
	Tokens    []int32 // BlockStored: the tokens of the blocks
	LoRA      string  // BlockStored: adapter name, empty for none
	Salt      string  // BlockStored: cache salt if the first block begins the sequence, else empty
}

// String renders the event on one line.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.Kind.String())
	for _, h := range e.Hashes {
		b.WriteString(" " + h.String())
	}
	if e.HasParent {
		b.WriteString(" after " + e.Parent.String())
	}
	if e.Kind == BlockStored {
		fmt.Fprintf(&b, " (%d tokens)", len(e.Tokens))
	}
	return b.String()
}
