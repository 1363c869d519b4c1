package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor"
	"github.com/quire-ai/quire/internal/model"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// Model is a model being served. Its fields are read-only. Close ends it.
type Model struct {
	Name      string // as it was asked for; of a path, the file's name without .gguf
	Path      string // of the file
	Config    *model.Config
	Metadata  gguf.Metadata
	Tokenizer *tokenizer.Tokenizer
	// Template renders conversations. It is nil if the model has none, or one with a fault: then TemplateErr says which.
	Template    *chat.Template
	TemplateErr error
	// SpecialTokens are the texts of the special tokens by the names that chat templates know them by.
	SpecialTokens map[string]string
	// Sampling is what the model's authors recommend where a request says nothing, else sample.Default.
	Sampling sample.Params
	Engine   *engine.Engine
	// MaxModelLen is the most tokens of a request, prompt and output. Engine.MaxTokens may be less: what the KV cache holds.
	MaxModelLen int
	Plan        MemoryPlan
	// Tiers are behind the KV cache; nil if nothing is. They are the engine's.
	Tiers *connector.Chain

	closers []func() error // in the order of opening
}

// Load opens a model and starts its engine. When ctx ends it gives up between two of its parts.
func Load(ctx context.Context, o Options) (*Model, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Model, err)
	}
	m := &Model{}
	if err := m.load(ctx, o); err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Model, errors.Join(err, m.Close()))
	}
	return m, nil
}

func (m *Model) load(ctx context.Context, o Options) error {
	path, err := resolve(ctx, o)
	if err != nil {
		return err
	}
	m.Name, m.Path = name(o.Model), path
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	m.closers = append(m.closers, f.Close)
	m.Metadata = f.Metadata
	if m.Tokenizer, err = tokenizer.FromGGUF(&f.Metadata); err != nil {
		return err
	}
	m.SpecialTokens = specialTokens(m.Tokenizer)
	var known catalog.Sampling
	if o.Catalog != nil {
		known = o.Catalog.Sampling(o.Model)
	}
	if m.Sampling, err = recommended(&f.Metadata, known); err != nil {
		return err
	}
	if o.ChatTemplate != "" {
		if m.Template, err = chat.Parse(o.ChatTemplate); err != nil {
			return err
		}
	} else if m.Template, m.TemplateErr = template(&f.Metadata); m.TemplateErr != nil {
		o.Log.Warn("the model's chat template cannot be used; chat completions need another", slog.Any("error", m.TemplateErr))
	}
	device, err := newDevice(o)
	if err != nil {
		return err
	}
	m.closers = append(m.closers, device.Close)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	weights, err := loadWeights(f, device, o)
	if err != nil {
		return err
	}
	m.Config, m.MaxModelLen = weights.Config, weights.MaxModelLen
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return m.start(o, device, weights, f)
}

// start sizes the KV cache and starts the engine over it.
func (m *Model) start(o Options, device *cpu.Device, weights *model.Model, f *gguf.File) error {
	s := &o.Engine.Sched
	s.MaxModelLen, s.Groups = weights.MaxModelLen, executor.Groups(weights)
	blockBytes := int64(weights.KVShape(s.BlockSize).BlockBytes())
	free := int64(0)
	if o.KVCacheTokens == 0 && o.KVCacheMemory == 0 {
		var err error
		if free, err = FreeMemory(); err != nil { // no Linux, or no /proc
			free = assumedFree
			o.Log.Info("free memory is not known; the KV cache is sized for a small machine", slog.Any("error", err))
		}
	}
	var err error
	if s.Blocks, err = sizeCache(o, blockBytes, free); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	ex, err := executor.New(executor.Config{
		Model: weights, Device: device, Blocks: s.Blocks, BlockSize: s.BlockSize, MaxNumBatchedTokens: s.MaxNumBatchedTokens,
	})
	if err != nil {
		return err
	}
	o.Engine.Vocab = ex.Vocab()
	if err := m.withTiers(&o, ex, f); err != nil {
		return err
	}
	m.Engine = engine.New(o.Engine, ex)
	m.closers = append(m.closers, m.Engine.Close)
	m.Plan = memoryPlan(s, blockBytes, m.Engine.MaxTokens())
	m.Plan.WeightBytes, m.Plan.CPU, m.Plan.Threads = weights.WeightBytes, device.Level().String(), device.Threads()
	shape := weights.KVShape(s.BlockSize)
	shape.Layers = weights.Layers
	m.Plan.WholeBytes = int64(m.Plan.LongestRequest+s.BlockSize-1) / int64(s.BlockSize) * int64(shape.BlockBytes())
	m.say(o.Log)
	return nil
}

// say logs the memory plan, and what follows from a KV cache smaller than the longest request.
func (m *Model) say(log *slog.Logger) {
	log.Info("model loaded", slog.String("model", m.Name), slog.Any("memory", m.Plan))
	if m.Plan.LongestRequest < m.MaxModelLen {
		log.Info("the KV cache is smaller than the model's context: longer requests are refused or end with length",
			slog.Int("longest_request", m.Plan.LongestRequest), slog.Int("max_model_len", m.MaxModelLen))
	}
}

// Close ends the engine and frees what Load took. Requests in flight end with engine.ErrClosed.
func (m *Model) Close() error {
	var errs []error
	for i := len(m.closers) - 1; i >= 0; i-- {
		errs = append(errs, m.closers[i]())
	}
	m.closers = nil
	return errors.Join(errs...)
}

// resolve returns the file that the options name.
func resolve(ctx context.Context, o Options) (string, error) {
	if o.Catalog != nil {
		return o.Catalog.Resolve(ctx, o.Model)
	}
	return o.Model, nil
}

// name returns what a model is called in the API.
func name(ref string) string {
	if strings.HasSuffix(ref, ".gguf") {
		return strings.TrimSuffix(filepath.Base(ref), ".gguf")
	}
	return ref
}

// template parses the chat template of a model. A model without one gives nil.
func template(m *gguf.Metadata) (*chat.Template, error) {
	src, err := m.StringOr("tokenizer.chat_template", "")
	if err != nil || src == "" {
		return nil, err
	}
	return chat.Parse(src)
}

func specialTokens(t *tokenizer.Tokenizer) map[string]string {
	tokens := make(map[string]string)
	for name, id := range map[string]int32{"bos_token": t.BOS(), "eos_token": t.EOS()} {
		if id != tokenizer.None {
			tokens[name] = string(t.Piece(id))
		}
	}
	return tokens
}

func newDevice(o Options) (*cpu.Device, error) {
	level, err := cpu.Detect(o.CPU)
	if err != nil {
		return nil, err
	}
	return cpu.NewDevice(cpu.Options{Level: level, Threads: o.Threads})
}

func loadWeights(f *gguf.File, device *cpu.Device, o Options) (*model.Model, error) {
	mo := model.Options{Device: device, MaxModelLen: o.MaxModelLen, WholeContext: o.WholeContext}
	if o.Progress != nil {
		mo.Progress = func(done, total int64) { o.Progress(Progress{Done: done, Total: total}) }
	}
	return model.Load(f, mo)
}

var _ engine.Executor = (*executor.Executor)(nil)
