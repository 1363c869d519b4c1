package cpu

import (
	"testing"
	"time"
)

// The same job again and again: how many workers take part after so long?
func TestCrew(t *testing.T) {
	ms := time.Millisecond
	fair := jobTime{wall: 10 * ms, waited: ms / 2, mine: 5, all: 10}
	late := jobTime{wall: 10 * ms, waited: 5 * ms, mine: 6, all: 10} // alone it would take 8.3 ms
	slow := jobTime{wall: 10 * ms, waited: 3 * ms, mine: 5, all: 10} // alone it would take 14 ms
	alone := jobTime{wall: 9 * ms, mine: 10, all: 10}

	c, now := newCrew(2), time.Duration(0)
	run := func(what string, j jobTime, n, want int) {
		t.Helper()
		for range n {
			now += 10 * ms
			c.observe(now, j)
		}
		if c.active != want {
			t.Errorf("%s: %d workers take part, want %d", what, c.active, want)
		}
	}
	run("free cores", fair, 100, 2)
	run("a slow worker that still helps", slow, 100, 2)
	run("a busy core", late, 3, 1)
	run("within the rest", alone, 90, 1)
	run("after the rest", alone, 11, 2)
	run("the core is busy still", late, 3, 1)
	run("a longer rest", alone, 190, 1)
	run("after the longer rest", alone, 11, 2)
	run("free cores", fair, 1000, 2)
	run("a busy core again", late, 3, 1)
	run("a short rest again", alone, 102, 2)
}

// Results do not depend on how many workers take part, and every chunk runs once, while workers come and go.
func TestRunWhileWorkersRest(t *testing.T) {
	d := newDevice(t, Generic, 4)
	for job := range 3000 {
		d.pool.active.Store(int32(1 + job%4))
		counts := make([]int32, 50) // each chunk has its own: a second run would be a race as well as a wrong count
		d.Run(len(counts), func(_, chunk int) { counts[chunk]++ })
		for chunk, n := range counts {
			if n != 1 {
				t.Fatalf("job %d: chunk %d ran %d times, want once", job, chunk, n)
			}
		}
	}
}
