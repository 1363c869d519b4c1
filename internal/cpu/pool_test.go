package cpu

import (
	"sync/atomic"
	"testing"
)

// Every chunk of every job runs once, also when jobs follow one another at once and when workers have parked.
func TestRunEachChunkOnce(t *testing.T) {
	d := newDevice(t, Generic, 4)
	for job := range 2000 {
		n := job % 67
		counts := make([]atomic.Int32, n)
		var busy [4]atomic.Int32
		d.Run(n, func(worker, chunk int) {
			if busy[worker].Add(1) != 1 {
				t.Errorf("job %d: worker %d runs two chunks at once", job, worker)
			}
			counts[chunk].Add(1)
			busy[worker].Add(-1)
		})
		for chunk := range counts {
			if got := counts[chunk].Load(); got != 1 {
				t.Fatalf("job %d: chunk %d ran %d times, want once", job, chunk, got)
			}
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	d := newDevice(t, Generic, 2)
	x := make([]float32, 10000)
	if n := testing.AllocsPerRun(100, func() { d.Scale(x, 0.5) }); n != 0 {
		t.Errorf("Scale allocates %v times, want 0", n)
	}
}
