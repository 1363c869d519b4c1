package pressure

import (
	"strconv"

	"github.com/quire-ai/quire/sched"
)

// reference is what plain first come, first served costs for requests in the order of arrival: no prefix cache, no
// watermark, blocks of 32, one block less than the cache has (a scheduler that keeps one back). The real one must not
// recompute more than twice that.
func reference(shapes []shape, kvTokens, budget int) sched.Counters {
	const blockSize = 32
	s := sched.New(sched.Config{
		Blocks: kvTokens/blockSize - 1, BlockSize: blockSize, MaxNumSeqs: maxSeqs, MaxNumBatchedTokens: budget,
		MaxModelLen: 4 * kvTokens, NoPrefixCaching: true,
	})
	for i, shape := range shapes {
		s.Apply(sched.AddRequest{Request: &sched.Request{
			ID: sched.RequestID(strconv.Itoa(i)), Prompt: make([]int32, shape.prompt), MaxTokens: shape.output, IgnoreEOS: true,
		}})
	}
	for now := 0.0; ; now++ {
		plan := s.Schedule(now)
		if plan.Idle() {
			return s.Stats().Counters
		}
		done := sched.StepDone{Step: plan.Step}
		for _, r := range plan.Requests {
			if r.Sample {
				done.Outputs = append(done.Outputs, sched.StepOutput{ID: r.ID, Tokens: []int32{0}})
			}
		}
		s.Apply(&done)
	}
}
