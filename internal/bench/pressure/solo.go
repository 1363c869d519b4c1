package pressure

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// request is one request of a workload.
type request struct {
	shape
	ids []int32 // the prompt
}

// key tells requests with other answers apart.
func (r request) key() string { return fmt.Sprint(r.output, r.ids) }

// prompts makes the requests of a workload: words chosen at random, cut to the exact number of tokens. Each request has a
// seed of its own, so that no prompt is used twice unless two workloads share them on purpose.
func prompts(w workload, t *tokenizer.Tokenizer) ([]request, error) {
	name := w.prompts
	if name == "" {
		name = w.name
	}
	number, err := strconv.ParseUint(name[1:], 10, 24)
	if err != nil {
		return nil, err
	}
	seed := uint64(name[0])<<24 | number
	text := func(number uint64, tokens int) ([]int32, error) {
		words := bench.Shape{Seed: seed<<32 | number, Prompts: 1, InputTokens: tokens}.Random()[0].Prompt
		ids := t.Encode(" "+words, tokenizer.Options{})
		if len(ids) < tokens {
			return nil, fmt.Errorf("%d words make %d tokens", tokens, len(ids))
		}
		return ids[:tokens], nil
	}
	shared, err := text(0, w.prefix)
	if err != nil {
		return nil, err
	}
	requests := make([]request, len(w.shapes))
	for i, s := range w.shapes {
		own, err := text(uint64(i)+1, s.prompt-w.prefix)
		if err != nil {
			return nil, err
		}
		requests[i] = request{s, slices.Concat(shared, own)}
	}
	return requests, nil
}

// answers are what requests get when they run alone, by request.key.
type answers map[string]*bench.Record

// solo lets each request of the workloads that will be answered run alone, on a server with room for it.
func solo(ctx context.Context, o Options, workloads []workload, kvTokens int) (answers, error) {
	room := kvTokens
	for _, w := range workloads {
		for _, s := range w.shapes {
			if s.fate(kvTokens) != refused {
				room = max(room, s.prompt+s.output)
			}
		}
	}
	const blockSize = 16
	room = (room + blockSize - 1) / blockSize * blockSize
	h, err := start(ctx, o.Model, room, config{BlockSize: blockSize, Budget: llm.DefaultMaxNumBatchedTokens}, nil)
	if err != nil {
		return nil, err
	}
	defer h.close()
	found := answers{}
	for _, w := range workloads {
		requests, err := prompts(w, h.model.Tokenizer)
		if err != nil {
			return nil, fmt.Errorf("prompts of %s: %w", w.name, err)
		}
		o.progress("solo runs of %s", w.name)
		for i, r := range requests {
			if r.leaves || r.fate(kvTokens) == refused || found[r.key()] != nil {
				continue
			}
			answer := h.target.Send(ctx, &bench.Request{PromptIDs: r.ids, OutputTokens: r.output, IgnoreEOS: true, NoStream: true})
			if answer.Err != nil {
				return nil, fmt.Errorf("solo run of %s, request %d: %w", w.name, i, answer.Err)
			}
			if len(answer.TokenIDs) != r.output {
				return nil, fmt.Errorf("solo run of %s, request %d: %d tokens, want %d", w.name, i, len(answer.TokenIDs), r.output)
			}
			found[r.key()] = answer
		}
	}
	return found, nil
}
