package model

import (
	"errors"
	"fmt"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/cpu"
)

// Model is a loaded model: read-only weights and the working memory of one step at a time. Its methods are called by
// one goroutine, the owner of its Device.
type Model struct {
	*Config
	MaxModelLen int   // longest sequence in tokens, from Options or the file
	WeightBytes int64 // memory of packed weights
	CacheGroups []CacheGroup

	dev         *cpu.Device
	embedding   *gguf.Tensor // token_embd.weight, read row by row from the file's mapping
	layers      []layer
	places      []place     // [layer]
	groupLayers int         // most layers of a cache group
	outNorm     []float32   // [Hidden]
	head        *cpu.Matrix // [Vocab][Hidden]
	global      *cpu.Rope
	local       *cpu.Rope // of windowed layers; the same as global unless the architecture gives them another base
}

// Load checks every tensor of an open file and packs the weights. The file must stay open as long as the model is used:
// embeddings are read from its mapping.
func Load(f *gguf.File, o Options) (*Model, error) {
	c, err := ParseConfig(f)
	if err != nil {
		return nil, err
	}
	m := &Model{Config: c, MaxModelLen: o.MaxModelLen, dev: o.Device}
	if m.MaxModelLen == 0 {
		m.MaxModelLen = c.Context
	}
	switch {
	case m.MaxModelLen <= 0:
		return nil, errors.New("load model: the file does not say its context length, and none was given")
	case c.Context > 0 && m.MaxModelLen > c.Context:
		return nil, fmt.Errorf("load model: a length of %d tokens exceeds the %d the model was trained for", m.MaxModelLen, c.Context)
	}
	m.setGroups(cacheGroups(c, m.MaxModelLen, o.WholeContext))
	l := &loader{f: f, c: c, o: o, taken: map[string]bool{}}
	for i := range f.Tensors {
		l.total += int64(f.Tensors[i].Size)
	}
	m.load(l)
	if l.err == nil {
		l.err = l.unknownTensor()
	}
	if l.err != nil {
		return nil, fmt.Errorf("load %s model: %w", c.Arch, l.err)
	}
	return m, nil
}

// load fills the model; faults stay in l.
func (m *Model) load(l *loader) {
	c := m.Config
	m.embedding = l.take("token_embd.weight", c.Hidden, c.Vocab)
	m.outNorm = l.vector("output_norm.weight", c.Hidden)
	m.global = l.ropeOf(&c.global, m.MaxModelLen)
	m.local = m.global
	if c.arch.localBase > 0 {
		m.local = l.ropeOf(&c.local, m.MaxModelLen)
	}
	for i := range c.Layers {
		if l.err != nil {
			return
		}
		m.layers = append(m.layers, l.layer(i))
	}
	if name := "output.weight"; l.has(name) {
		m.head = l.matrix(c.Hidden, rowsOf{name: name, rows: c.Vocab})
	} else {
		m.head = l.matrix(c.Hidden, rowsOf{name: "token_embd.weight", rows: c.Vocab})
	}
	if l.err != nil {
		return
	}
	m.WeightBytes = int64(m.head.Bytes())
	for i := range m.layers {
		w := &m.layers[i]
		m.WeightBytes += int64(w.qkv.Bytes() + w.out.Bytes() + w.gateUp.Bytes() + w.down.Bytes())
	}
}
