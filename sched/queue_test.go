package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueueAgainstASlice runs random operations on a queue and on a slice that is sorted or spliced, and compares the
// order after each.
func TestQueueAgainstASlice(t *testing.T) {
	for _, byPriority := range []bool{false, true} {
		t.Run(fmt.Sprintf("byPriority=%t", byPriority), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			q := queue{byPriority: byPriority}
			var want []*request
			for i := range 3000 {
				switch {
				case len(want) > 0 && rng.IntN(5) < 2:
					j := rng.IntN(len(want))
					q.remove(want[j])
					want = slices.Delete(want, j, j+1)
				default:
					r := &request{Request: &Request{ID: RequestID(fmt.Sprint(i)), Priority: rng.IntN(4), Arrival: float64(rng.IntN(50))}}
					if rng.IntN(2) == 0 {
						q.pushFront(r)
						want = slices.Insert(want, 0, r)
					} else {
						q.pushBack(r)
						want = append(want, r)
					}
				}
				if byPriority {
					slices.SortFunc(want, func(a, b *request) int {
						if a.before(b) {
							return -1
						}
						return 1
					})
				}
				if got := slices.Collect(q.ordered); !slices.Equal(got, want) {
					t.Fatalf("after %d operations the order differs", i+1)
				}
				if q.len() != len(want) || len(want) > 0 && q.head() != want[0] || len(want) == 0 && q.head() != nil {
					t.Fatalf("after %d operations: %d requests, head %v; want %d", i+1, q.len(), q.head(), len(want))
				}
			}
		})
	}
}

// TestEveryMoveIsChecked: a move that the table does not have is our mistake, and stops there.
func TestEveryMoveIsChecked(t *testing.T) {
	for from := range State(stateCount) {
		for to := range State(stateCount) {
			s := New(Config{Blocks: 1, BlockSize: 1, MaxNumSeqs: 1, MaxNumBatchedTokens: 1, MaxModelLen: 2})
			r := &request{Request: &Request{ID: "a"}, state: from}
			moved := func() (moved bool) {
				defer func() { moved = recover() == nil }()
				s.move(r, to)
				return true
			}()
			if legal := slices.Contains(from.Next(), to); moved != legal {
				t.Errorf("%v → %v: moved %t; want %t", from, to, moved, legal)
			}
		}
	}
}
