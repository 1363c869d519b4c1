package model

import (
	"fmt"
	"math"

	"github.com/quire-ai/quire/gguf"
)

// Config is what a GGUF's metadata say about a model, checked. It is read-only after ParseConfig.
type Config struct {
	Arch       string  // general.architecture
	Layers     int     // number of blocks
	Hidden     int     // width of the residual stream
	Heads      int     // query heads of a layer
	KVHeads    int     // key and value heads of a layer; divides Heads
	HeadDim    int     // components of one head, the same for q, k and v
	FFN        int     // width between up and down
	Vocab      int     // rows of token_embd.weight
	Context    int     // positions the model was trained for; 0 when the file does not say
	Window     int     // tokens a windowed layer sees, the token itself included; 0: no layer has a window
	NormEps    float32 // epsilon of every RMS norm
	AttnScale  float32 // factor of q·k before softmax: 1/sqrt(HeadDim) for most
	AttnCap    float32 // limit of limit·tanh(score/limit) over scaled scores, or 0
	LogitCap   float32 // the same over the final logits, or 0
	EmbedScale float32 // factor of the embedding; 1 for most

	arch        *arch
	globalEvery int      // every n-th layer attends globally; 0: all layers alike
	global      ropeSpec // layers that see everything
	local       ropeSpec // windowed layers
}

// Windowed tells whether a layer sees only the last Window tokens.
func (c *Config) Windowed(layer int) bool {
	if c.Window == 0 {
		return false
	}
	return c.globalEvery == 0 || (layer+1)%c.globalEvery != 0
}

// QRows is the width of a layer's q.
func (c *Config) QRows() int { return c.Heads * c.HeadDim }

// KVRows is the width of a layer's k, and of its v.
func (c *Config) KVRows() int { return c.KVHeads * c.HeadDim }

// limits of a sane file: a hostile one must not make us allocate by its word alone.
const (
	maxLayers = 1 << 10
	maxWidth  = 1 << 18
	maxVocab  = 1 << 22
	maxHeads  = 1 << 10
)

// ParseConfig reads and checks the metadata of a model file.
func ParseConfig(f *gguf.File) (*Config, error) {
	m := meta{f: f}
	name, err := f.Metadata.String("general.architecture")
	if err != nil {
		return nil, fmt.Errorf("read model config: %w", err)
	}
	a, ok := findArch(name)
	if !ok {
		return nil, fmt.Errorf("read model config: architecture %q is not supported; supported are %q", name, Architectures())
	}
	m.prefix = name + "."
	c := &Config{Arch: name, arch: a}
	m.refuse()
	c.readShapes(&m)
	if m.err == nil {
		c.readScales(&m)
		m.fail(c.readRope(&m))
	}
	if m.err != nil {
		return nil, fmt.Errorf("read config of %s model: %w", name, m.err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("read config of %s model: %w", name, err)
	}
	return c, nil
}

// readShapes fills the sizes. Faults are collected in m.
func (c *Config) readShapes(m *meta) {
	c.Layers = m.size("block_count", maxLayers)
	c.Hidden = m.size("embedding_length", maxWidth)
	c.FFN = m.sameSize("feed_forward_length", c.Layers, maxWidth)
	c.Heads = m.sameSize("attention.head_count", c.Layers, maxHeads)
	c.KVHeads = c.Heads
	if m.has("attention.head_count_kv") {
		c.KVHeads = m.sameSize("attention.head_count_kv", c.Layers, maxHeads)
	}
	c.Context = m.sizeOr("context_length", math.MaxInt32, 0)
	c.NormEps = float32(m.float("attention.layer_norm_rms_epsilon"))
	if m.err != nil {
		return
	}
	if c.Heads == 0 || c.KVHeads == 0 {
		m.err = fmt.Errorf("attention.head_count %d and attention.head_count_kv %d must be positive", c.Heads, c.KVHeads)
		return
	}
	c.HeadDim = m.sizeOr("attention.key_length", maxWidth, c.Hidden/c.Heads)
	if v := m.sizeOr("attention.value_length", maxWidth, c.HeadDim); v != c.HeadDim && m.err == nil {
		m.err = fmt.Errorf("attention.key_length %d and attention.value_length %d differ, which is not supported", c.HeadDim, v)
	}
	c.Window = m.sizeOr("attention.sliding_window", math.MaxInt32, 0)
	c.globalEvery = m.sizeOr("attention.sliding_window_pattern", maxLayers, c.arch.globalEvery)
	if emb, ok := m.f.Tensor("token_embd.weight"); ok && len(emb.Shape) == 2 && emb.Shape[1] <= maxVocab {
		c.Vocab = int(emb.Shape[1])
	}
}

// readScales fills the factors and limits of attention, embedding and logits.
func (c *Config) readScales(m *meta) {
	scale := 1 / math.Sqrt(float64(c.HeadDim))
	if c.Arch == "gemma3" && c.Layers == 62 {
		// Gemma 3 27B divides by sqrt(hidden/heads) (config.json query_pre_attn_scalar 168); the file does not say so,
		// and llama.cpp knows the model by its layers too.
		scale = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
	}
	c.AttnScale = float32(m.floatOr("attention.scale", scale))
	c.AttnCap = float32(m.floatOr("attn_logit_softcapping", 0))
	c.LogitCap = float32(m.floatOr("final_logit_softcapping", 0))
	c.EmbedScale = 1
	if c.arch.embedScale {
		c.EmbedScale = float32(math.Sqrt(float64(c.Hidden)))
	}
}

// check refuses what the forward pass cannot run.
func (c *Config) check() error {
	switch {
	case c.Layers == 0 || c.Hidden == 0 || c.FFN == 0 || c.HeadDim == 0:
		return fmt.Errorf("block_count %d, embedding_length %d, feed_forward_length %d and head size %d must be positive",
			c.Layers, c.Hidden, c.FFN, c.HeadDim)
	case c.Vocab == 0:
		return fmt.Errorf("token_embd.weight is missing or is no matrix of at most %d rows", maxVocab)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d query heads cannot share %d key-value heads evenly", c.Heads, c.KVHeads)
	case !(c.NormEps > 0 && c.NormEps < 1):
		return fmt.Errorf("attention.layer_norm_rms_epsilon %g is not between 0 and 1", c.NormEps)
	case c.arch.globalEvery > 0 && c.Window == 0:
		return fmt.Errorf("attention.sliding_window is missing: every %dth layer is global, the others need it", c.arch.globalEvery)
	case !(c.AttnScale > 0 && c.AttnScale <= 1) || !(c.AttnCap >= 0) || !(c.LogitCap >= 0):
		return fmt.Errorf("attention scale %g and logit caps %g and %g: want a scale of 0 to 1 and no negative cap",
			c.AttnScale, c.AttnCap, c.LogitCap)
	}
	return nil
}
