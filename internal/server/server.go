package server

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/metric"
	"github.com/quire-ai/quire/internal/openai"
)

// Options is what a server serves and how.
type Options struct {
	Model *llm.Model
	// Names are the model's names in the API; answers use the first. Empty is the model's own.
	Names []string
	// APIKeys are the bearer tokens of which a client must send one for paths under /v1. Empty lets anyone in.
	APIKeys []string
	// MaxRequestBytes bounds a request's body.
	MaxRequestBytes int64
	// MaxLogprobs bounds the alternatives a position that a request may ask for; -1 has no bound.
	MaxLogprobs int
	// Priorities says that the scheduler heeds priorities.
	Priorities bool
	// StreamInterval is the number of tokens a frame carries, at least 1.
	StreamInterval int
	// DevEndpoints offers /pause and /resume.
	DevEndpoints bool
	// Seed keys the random numbers of requests that name no seed; 0 draws a key.
	Seed uint64
	// LogRequests logs a line for each request.
	LogRequests bool
	// Version is what GET /version says.
	Version string
	// Metrics answers GET /metrics and is told of each request. It may be nil.
	Metrics *metric.Metrics
	Log     *slog.Logger
}

// Server answers HTTP requests about one model. It is an http.Handler, or runs a listener with Serve.
type Server struct {
	opts    Options
	model   *llm.Model
	log     *slog.Logger
	created time.Time // of the model card
	keys    keys
	seeds   seeds
	routes  *http.ServeMux
	longest int          // bytes that a token stands for at most
	parts   bool         // the chat template takes contents apart
	active  atomic.Int64 // requests to generate, for GET /load
	ignored sync.Once    // the log says that kv_transfer_params are ignored

	openBytes  int64 // of bodies being read, at most
	openBodies *semaphore.Weighted
}

// New prepares a server. The model remains the caller's to close.
func New(o Options) *Server {
	if len(o.Names) == 0 {
		o.Names = []string{o.Model.Name}
	}
	s := &Server{opts: o, model: o.Model, log: o.Log, created: time.Now(), keys: newKeys(o.APIKeys), seeds: newSeeds(o.Seed)}
	s.openBytes = max(maxOpenBodies, o.MaxRequestBytes)
	s.openBodies = semaphore.NewWeighted(s.openBytes)
	s.longest = longestPiece(o.Model.Tokenizer)
	s.parts = o.Model.Template != nil && o.Model.Template.WantsContentParts()
	s.routes = s.newRoutes()
	return s
}

// limits are the bounds of requests.
func (s *Server) limits() openai.Limits {
	return openai.Limits{MaxLogprobs: s.opts.MaxLogprobs, VocabSize: s.model.Engine.Vocab(), Priorities: s.opts.Priorities}
}
