// Package quire runs language models inside a Go program: the engine of quire serve, without the server.
//
// Open loads a GGUF file and starts an engine over it. Generate and Chat may be called by any number of goroutines; the
// engine computes all their requests together, on a KV cache of fixed size, and gives each the text it would have alone.
//
//	e, err := quire.Open(ctx, quire.Options{Model: "smollm2:135m"})
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	for tok, err := range e.Generate(ctx, quire.Request{Prompt: "The capital of France is", MaxTokens: 16}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(tok.Text)
//	}
//
// What a request's text depends on is the model, the request and its seed: not on other requests, the number of threads or
// the processor. Leaving the loop early, or ending the context, aborts the request.
//
// A program that must not be surprised should give KVCacheTokens or KVCacheMemory, and MaxTokens in each request.
//
// The API follows semantic versioning. Before version 1 it may change between minor versions; CHANGELOG.md says how.
package quire

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// Options say what Open loads and how much it may take. Only Model is needed.
type Options struct {
	// Model is a path to a .gguf file, a name such as "smollm2:135m" or a reference hf:org/repo/file.gguf. The last two
	// are fetched, once, into CacheDir.
	Model string
	// CacheDir is where fetched models lie; empty means quire/models in the user's cache folder.
	CacheDir string

	// MaxModelLen is the most tokens of a request, prompt and output; 0 is the model's own context.
	MaxModelLen int
	// KVCacheTokens is the size of the KV cache in tokens, a multiple of 16. KVCacheMemory is its size in bytes. Give at
	// most one; with neither, it has room for 32,768 tokens or one longest request, if a quarter of the free memory does.
	KVCacheTokens int
	KVCacheMemory int64
	// MaxNumSeqs is the most requests that are computed together; others wait. 0 means 64.
	MaxNumSeqs int
	// MaxNumBatchedTokens is the most tokens computed in one step: more serves long prompts faster and lets running
	// requests wait longer for their next token. 0 means 512.
	MaxNumBatchedTokens int
	// MaxQueuedRequests is the most requests that wait for their first step; more are refused. 0 means 8192.
	MaxQueuedRequests int
	// NoPrefixCaching keeps requests that begin alike from sharing what is computed for their beginning.
	NoPrefixCaching bool

	// Threads is the number of threads that compute; 0 takes as many as the process may keep busy.
	Threads int
	// CPU forces the kernels: "generic", "avx2", "avx512vnni", "amx". Empty takes the fastest. All give the same bits.
	CPU string

	// Progress is told, while Open runs, how many bytes of the weights are ready. It may be nil.
	Progress func(done, total int64)
	// Log is told what an operator would want to know. It may be nil.
	Log *slog.Logger
}

// Engine is a loaded model that answers requests. Its methods may be called by any goroutine.
type Engine struct {
	model *llm.Model
}

// Open loads a model and starts its engine. The caller must Close it. ctx is for loading alone.
func Open(ctx context.Context, o Options) (*Engine, error) {
	names, err := openCatalog(o.CacheDir)
	if err != nil && !isFile(o.Model) { // a user without a home needs no cache for a file
		return nil, fmt.Errorf("open %s: %w", o.Model, err)
	}
	lo := llm.Options{
		Model: o.Model, Catalog: names, CPU: o.CPU, Threads: o.Threads, MaxModelLen: o.MaxModelLen,
		KVCacheTokens: o.KVCacheTokens, KVCacheMemory: o.KVCacheMemory, Log: o.Log,
	}
	lo.Engine.MaxQueuedRequests = o.MaxQueuedRequests
	s := &lo.Engine.Sched
	s.MaxNumSeqs, s.MaxNumBatchedTokens, s.NoPrefixCaching = o.MaxNumSeqs, o.MaxNumBatchedTokens, o.NoPrefixCaching
	s.Watermark = llm.DefaultWatermark
	if o.Progress != nil {
		lo.Progress = func(p llm.Progress) { o.Progress(p.Done, p.Total) }
	}
	m, err := llm.Load(ctx, lo)
	if err != nil {
		return nil, err
	}
	return &Engine{model: m}, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openCatalog returns the catalogue of models over a cache folder. It reads nothing from the environment but where the
// user's cache is.
func openCatalog(dir string) (*catalog.Catalog, error) {
	cfg, err := catalog.ConfigFromEnv(func(string) string { return "" })
	if dir != "" {
		cfg.Dir, err = dir, nil
	}
	if err != nil {
		return nil, err
	}
	return catalog.New(cfg), nil
}

// Model returns the name of the model: what Open was asked for, or the file's name without .gguf.
func (e *Engine) Model() string { return e.model.Name }

// MaxTokens returns the most tokens, prompt and output, that a request can have: the model's context, or what the KV cache
// holds if that is less.
func (e *Engine) MaxTokens() int { return e.model.Engine.MaxTokens() }

// MemoryPlan says in one line what the model takes: KV cache, longest request, weights, kernels and threads.
func (e *Engine) MemoryPlan() string { return e.model.Plan.String() }

// Tokenize returns the tokens of a text, as Generate would compute them.
func (e *Engine) Tokenize(text string) []int32 {
	return e.model.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: true, ParseSpecial: true})
}

// Detokenize returns the text of tokens, special ones left out.
func (e *Engine) Detokenize(tokens []int32) string { return e.model.Tokenizer.DecodeText(tokens, true) }

// Shutdown refuses new requests with ErrDraining and waits until those that run or wait have ended. If ctx ends first it
// returns its error; Close ends what is left.
func (e *Engine) Shutdown(ctx context.Context) error { return e.model.Engine.Drain(ctx) }

// Close ends every request with ErrClosed and frees the model's memory. Call it once nobody uses the Engine any more.
func (e *Engine) Close() error { return e.model.Close() }

// Errors of Generate and Chat. They come before any token, but for ErrClosed.
var (
	// ErrDraining refuses a request after Shutdown.
	ErrDraining = engine.ErrDraining
	// ErrClosed ends a request because of Close.
	ErrClosed = engine.ErrClosed
	// ErrEmptyPrompt refuses a request without a token to start from.
	ErrEmptyPrompt = engine.ErrEmptyPrompt
)

// TooLongError refuses a request that can never be served, with the numbers.
type TooLongError = engine.TooLongError

// QueueFullError refuses a request because too many wait already.
type QueueFullError = engine.QueueFullError
