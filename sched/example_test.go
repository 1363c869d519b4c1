package sched_test

import (
	"fmt"

	"github.com/quire-ai/quire/sched"
)

// A whole engine around the scheduler, with a model that counts: the token after n tokens is n. Two requests share a cache
// of 24 tokens; the second is preempted when both no longer fit, and finishes later with the same text.
func Example() {
	s := sched.New(sched.Config{
		Blocks: 6, BlockSize: 4, MaxNumSeqs: 2, MaxNumBatchedTokens: 16, MaxModelLen: 100,
	})
	for i, id := range []sched.RequestID{"a", "b"} {
		prompt := append([]int32{int32(i)}, make([]int32, 8)...)
		s.Apply(sched.AddRequest{Request: &sched.Request{ID: id, Prompt: prompt, MaxTokens: 5}})
	}
	text := map[sched.RequestID][]int32{}
	for {
		plan := s.Schedule(0)
		if plan.Idle() {
			break
		}
		done := sched.StepDone{Step: plan.Step}
		for _, r := range plan.Requests {
			// A real executor computes tokens r.From to r.From+r.N of r.ID into r.Blocks, and samples if told to.
			if r.Sample {
				done.Outputs = append(done.Outputs, sched.StepOutput{ID: r.ID, Tokens: []int32{int32(r.From + r.N)}})
			}
		}
		for _, c := range s.Apply(&done) {
			switch c.Kind {
			case sched.Emitted:
				text[c.ID] = append(text[c.ID], c.Token)
			case sched.Finished:
				fmt.Printf("%v, preempted %d times: %v\n", c, c.Preemptions, text[c.ID])
			}
		}
	}
	// Output:
	// a finished: length, preempted 0 times: [9 10 11 12 13]
	// b finished: length, preempted 1 times: [9 10 11 12 13]
}

// A request that can never be served is refused before it waits, with the number and the limit.
func ExampleScheduler_Admissible() {
	s := sched.New(sched.Config{Blocks: 256, BlockSize: 16, MaxNumSeqs: 8, MaxNumBatchedTokens: 512, MaxModelLen: 32768})
	fmt.Println(s.Admissible(5000))
	// Output:
	// prompt of 5000 tokens exceeds the KV cache of 4096
}
