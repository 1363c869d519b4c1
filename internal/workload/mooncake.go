// Package workload reads recorded traffic.
package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Request is one request of recorded traffic: how long it is and which blocks its prompt is made of, not its text.
type Request struct {
	At     time.Duration // from the beginning of the recording
	Input  int           // tokens of the prompt, at least 1
	Output int           // tokens of the answer, at least 1
	Blocks []int64       // ids of the prompt's blocks; equal ids mean equal blocks behind equal prefixes. The last may be partial
}

// mooncakeBlock is the number of tokens that an id of a Mooncake trace stands for.
const mooncakeBlock = 512

// ReadMooncake reads a trace of Mooncake (Qin et al., FAST'25), one JSON object a line, with all lengths divided by scale, a
// divisor of 512: a block of the trace becomes a block of 512/scale tokens, so prompts share exactly what they shared. At most n
// requests are read; 0 means all.
func ReadMooncake(r io.Reader, scale, n int) ([]Request, error) {
	if scale < 1 || mooncakeBlock%scale != 0 {
		return nil, fmt.Errorf("read trace: scale of %d: want a divisor of %d", scale, mooncakeBlock)
	}
	var all []Request
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for i := 1; lines.Scan() && (n == 0 || len(all) < n); i++ {
		var line struct {
			Timestamp int64   `json:"timestamp"` // ms
			Input     int     `json:"input_length"`
			Output    int     `json:"output_length"`
			Blocks    []int64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read trace: line %d: %w", i, err)
		}
		if want := divideUp(line.Input, mooncakeBlock); line.Input < 1 || len(line.Blocks) != want {
			return nil, fmt.Errorf("read trace: line %d: %d blocks of a prompt of %d tokens, want %d", i, len(line.Blocks), line.Input, want)
		}
		all = append(all, Request{
			At: time.Duration(line.Timestamp) * time.Millisecond, Input: divideUp(line.Input, scale),
			Output: max(line.Output/scale, 1), Blocks: line.Blocks,
		})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("read trace: it has no requests")
	}
	return all, nil
}

func divideUp(a, b int) int { return (a + b - 1) / b }

// Prompt makes up the tokens of the request's prompt, below vocab, in blocks of blockSize: equal ids give equal tokens.
func (r *Request) Prompt(blockSize, vocab int) []int32 {
	tokens := make([]int32, 0, r.Input)
	for _, id := range r.Blocks {
		random := rand.New(rand.NewPCG(uint64(id), 1))
		for range min(blockSize, r.Input-len(tokens)) {
			tokens = append(tokens, random.Int32N(int32(vocab)))
		}
	}
	return tokens
}
