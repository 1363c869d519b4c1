package sched_test

import (
	"strings"
	"testing"

	"github.com/quire-ai/quire/sched"
)

// TestValidateReportsEveryFault: all faults at once, each with its number.
func TestValidateReportsEveryFault(t *testing.T) {
	cfg := sched.Config{Blocks: -3, MaxNumSeqs: 1, MaxModelLen: 1, LongPrefillThreshold: -2, Watermark: 1.5, SpecTokens: -1}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no fault found")
	}
	for _, want := range []string{
		"blocks -3 is not positive", "block size 0 is not positive", "max num batched tokens 0 is not positive",
		"max model len 1 leaves no room", "long prefill threshold -2 is negative", "watermark 1.5 is not between 0 and 1",
		"spec tokens -1 is negative",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %q; want %q in it", err, want)
		}
	}
	good := config(4)
	if err := good.Validate(); err != nil {
		t.Errorf("Validate() = %v for a good configuration", err)
	}
}

func TestRefusals(t *testing.T) {
	cfg := config(4) // 64 tokens
	cfg.MaxModelLen = 40
	cfg.NoChunkedPrefill = true
	cfg.MaxNumBatchedTokens = 20
	s := sched.New(cfg)
	for _, c := range []struct {
		prompt int
		want   sched.RefusalReason
	}{
		{0, sched.EmptyPrompt},
		{1, 0},
		{20, 0},
		{21, sched.ExceedsBudget},
		{40, sched.ExceedsModelLen},
	} {
		var got sched.RefusalReason
		if r := s.Admissible(c.prompt); r != nil {
			got = r.Reason
		}
		if got != c.want {
			t.Errorf("Admissible(%d) = %v; want %v", c.prompt, got, c.want)
		}
	}
	r := &sched.Request{ID: "a", Prompt: []int32{1}}
	s.Apply(sched.AddRequest{Request: r})
	changes := s.Apply(sched.AddRequest{Request: r})
	if len(changes) != 1 || changes[0].Kind != sched.Refused || changes[0].Err.Error() != "request id is in use" {
		t.Errorf("the same id again: %v; want it refused", changes)
	}
}
