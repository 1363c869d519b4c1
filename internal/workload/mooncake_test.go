package workload

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadMooncake(t *testing.T) {
	const trace = `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 1536, "output_length": 500, "hash_ids": [0, 1, 3]}
`
	requests, err := ReadMooncake(strings.NewReader(trace), 32, 0)
	if err != nil || len(requests) != 2 {
		t.Fatalf("%d requests, %v", len(requests), err)
	}
	a, b := requests[0], requests[1]
	if a.Input != 35 || a.Output != 1 || b.Input != 48 || b.Output != 15 || b.At != 3*time.Second {
		t.Errorf("read %+v and %+v", a, b)
	}
	p, q := a.Prompt(16, 1000), b.Prompt(16, 1000)
	if len(p) != 35 || len(q) != 48 || !slices.Equal(p[:32], q[:32]) || slices.Equal(p[32:], q[32:35]) {
		t.Errorf("prompts of %d and %d tokens, %v and %v: want 32 in common", len(p), len(q), p, q)
	}
	if slices.Max(q) >= 1000 || slices.Min(q) < 0 {
		t.Error("a token is not in the vocabulary")
	}
	if one, err := ReadMooncake(strings.NewReader(trace), 32, 1); err != nil || len(one) != 1 {
		t.Errorf("one request: %d, %v", len(one), err)
	}
	for text, scale := range map[string]int{
		"": 32, trace: 31, "{": 32, `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1]}`: 32,
		`{"timestamp": 0, "input_length": 0, "output_length": 5, "hash_ids": []}`: 32,
	} {
		if _, err := ReadMooncake(strings.NewReader(text), scale, 0); err == nil {
			t.Errorf("%q at 1:%d is read", text, scale)
		}
	}
}
