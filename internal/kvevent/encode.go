package kvevent

import (
	"encoding/binary"
	"math"

	"github.com/quire-ai/quire/kv"
)

// Form is how events are written; batches are arrays in both.
type Form uint8

const (
	// Map writes an event as a map by names: vLLM's form since 2026-06 (PR #42892).
	Map Form = iota
	// Array writes the values only, behind the event's tag: vLLM's form before.
	Array
)

// mediumName is vLLM's word for a place. Here, where a CPU computes, the pool is what a GPU's memory is there: the place from
// which attention reads.
func mediumName(m kv.Medium) string { return [media]string{"GPU", "CPU"}[m] }

// batch is a batch of events on its way to msgpack.
type batch struct {
	form   Form
	groups []kv.Group // cache groups of the model; empty means one with full attention
	events int
	body   []byte // of the events
}

// payload returns the batch, [seconds, [events], rank], and empties it.
func (b *batch) payload(seconds float64) []byte {
	p := make([]byte, 0, 16+len(b.body))
	p = appendArray(p, 3)
	p = binary.BigEndian.AppendUint64(append(p, 0xcb), math.Float64bits(seconds))
	p = appendArray(p, b.events)
	p = append(p, b.body...)
	p = appendInt(p, 0) // data_parallel_rank
	b.events, b.body = 0, b.body[:0]
	return p
}

// begin begins an event with so many fields behind its tag.
func (b *batch) begin(tag string, fields int) {
	b.events++
	if b.form == Array {
		b.body = appendText(appendArray(b.body, fields+1), tag)
		return
	}
	b.body = appendText(appendText(appendMap(b.body, fields+1), "type"), tag)
}

// field names the value that follows.
func (b *batch) field(name string) {
	if b.form == Map {
		b.body = appendText(b.body, name)
	}
}

func (b *batch) text(name, value string) {
	b.field(name)
	b.body = appendText(b.body, value)
}

func (b *batch) number(name string, value int) {
	b.field(name)
	b.body = appendInt(b.body, value)
}

// everywhere tells of a run in each of the places where its blocks lie.
func (b *batch) everywhere(run []*block) {
	for m := range media {
		if len(run) > 0 && run[0].copies[m] > 0 {
			b.stored(kv.Medium(m), run)
		}
	}
}

// stored tells of blocks that follow each other; of none, nothing.
func (b *batch) stored(m kv.Medium, run []*block) {
	if len(run) == 0 {
		return
	}
	first, window, fields := run[0], 0, 10
	if g := int(first.group); g < len(b.groups) {
		window = b.groups[g].Window
	}
	if window > 0 {
		fields++
	}
	b.begin("BlockStored", fields)
	b.field("block_hashes")
	b.body = appendArray(b.body, len(run))
	for _, x := range run {
		b.body = appendHash(b.body, x.hash)
	}
	b.field("parent_block_hash")
	if first.hasParent {
		b.body = appendHash(b.body, first.parent)
	} else {
		b.body = append(b.body, msgNil)
	}
	b.field("token_ids")
	b.body = appendArray(b.body, len(run)*len(first.tokens))
	for _, x := range run {
		for _, t := range x.tokens {
			b.body = appendInt(b.body, int(t))
		}
	}
	b.number("block_size", len(first.tokens))
	b.field("lora_id")
	b.body = append(b.body, msgNil)
	b.text("medium", mediumName(m))
	b.field("lora_name")
	b.body = appendTextOrNil(b.body, first.lora)
	b.field("extra_keys")
	b.extraKeys(run)
	b.number("group_idx", int(first.group))
	if window == 0 {
		b.text("kv_cache_spec_kind", "full_attention")
		return
	}
	b.text("kv_cache_spec_kind", "sliding_window")
	b.number("kv_cache_spec_sliding_window", window)
}

// extraKeys writes, for each block, what its hash covers beside its parent and tokens: adapter, then salt, or nil.
func (b *batch) extraKeys(run []*block) {
	b.body = appendArray(b.body, len(run))
	for _, x := range run {
		switch {
		case x.lora == "" && x.salt == "":
			b.body = append(b.body, msgNil)
		case x.salt == "":
			b.body = appendText(appendArray(b.body, 1), x.lora)
		case x.lora == "":
			b.body = appendText(appendArray(b.body, 1), x.salt)
		default:
			b.body = appendText(appendText(appendArray(b.body, 2), x.lora), x.salt)
		}
	}
}

func (b *batch) removed(m kv.Medium, n name) {
	b.begin("BlockRemoved", 3)
	b.field("block_hashes")
	b.body = appendHash(appendArray(b.body, 1), n.hash)
	b.text("medium", mediumName(m))
	b.number("group_idx", int(n.group))
}

func (b *batch) cleared() { b.begin("AllBlocksCleared", 0) }
