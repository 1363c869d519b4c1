package sched_test

import (
	"testing"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// noStore is a connector that has nothing.
type noStore struct{}

func (noStore) Match(sched.MatchQuery) sched.Match                       { return sched.Match{} }
func (noStore) Finished(sched.RequestID, sched.Epoch, sched.Reason) bool { return false }

// TestConnectorSeesEveryBlock holds that a connector is offered each full block once, when it was computed, and is told of
// each that is taken again while its content is still there.
func TestConnectorSeesEveryBlock(t *testing.T) {
	s := sched.New(sched.Config{Blocks: 5, BlockSize: 2, MaxNumSeqs: 2, MaxNumBatchedTokens: 4, MaxModelLen: 20, Connector: noStore{}})
	inPool := map[kv.BlockID]kv.Hash{} // as a store would have copied it
	var filled, evicted int
	for _, id := range []sched.RequestID{"a", "b", "c"} {
		s.Apply(sched.AddRequest{Request: &sched.Request{ID: id, Prompt: ids(string(id), 7), MaxTokens: 2}})
		for s.Stats().Running+s.Stats().Waiting > 0 {
			p := s.Schedule(0)
			for _, e := range p.Evicted {
				if inPool[e.Block] != e.Hash {
					t.Fatalf("block %d is evicted as %x, it holds %x", e.Block, e.Hash, inPool[e.Block])
				}
				delete(inPool, e.Block)
				evicted++
			}
			var out []sched.StepOutput
			for i := range p.Requests {
				if p.Requests[i].Sample {
					out = append(out, sched.StepOutput{ID: p.Requests[i].ID, Tokens: []int32{7}})
				}
			}
			s.Apply(&sched.StepDone{Step: p.Step, Outputs: out})
			for _, f := range s.Filled() {
				for i := f.From; i < f.To; i++ {
					b := f.Tables[0][i]
					if _, ok := inPool[b]; ok {
						t.Fatalf("block %d is filled twice", b)
					}
					inPool[b] = f.Hashes[i]
					filled++
				}
			}
		}
	}
	// Each request computes 8 tokens, its last output none: 4 blocks. The pool keeps 5 of the 12.
	if filled != 12 || evicted != 7 {
		t.Errorf("%d blocks filled, %d evicted; want 12, 7", filled, evicted)
	}
}

// A row that fails fills nothing.
func TestFailedRowFillsNothing(t *testing.T) {
	s := sched.New(sched.Config{Blocks: 8, BlockSize: 2, MaxNumSeqs: 2, MaxNumBatchedTokens: 16, MaxModelLen: 20, Connector: noStore{}})
	for _, id := range []sched.RequestID{"a", "b"} {
		s.Apply(sched.AddRequest{Request: &sched.Request{ID: id, Prompt: ids(string(id), 4), MaxTokens: 2}})
	}
	p := s.Schedule(0)
	s.Apply(&sched.StepDone{Step: p.Step, Outputs: []sched.StepOutput{{ID: "a", Err: "not a number"}, {ID: "b", Tokens: []int32{7}}}})
	if f := s.Filled(); len(f) != 1 || f[0].ID != "b" || f[0].To != 2 {
		t.Errorf("Filled() = %+v, want the two blocks of b", f)
	}
}
