package cpu

import "time"

// crew decides how many of a pool's workers take part in jobs. When another program takes a core, the worker on it is
// stopped while it holds a chunk, and everybody waits for it, again and again: then the job would be done sooner without
// it. The crew compares the time that jobs took with an estimate of what they would have taken with one worker less,
// lets a worker rest when that is better, and takes it back after a while to see whether the core is free again.
//
// Owned by the goroutine that calls do. Time is handed in.
type crew struct {
	size   int // of the pool
	active int // workers that take part, worker 0 among them

	seen  jobTime       // the sum of the jobs of this window
	back  time.Duration // when a resting worker returns
	rest  time.Duration // how long the next one to rest will
	since time.Duration // when the last one returned
}

// jobTime is what worker 0 saw of a job.
type jobTime struct {
	wall   time.Duration // from the job's beginning to its end
	waited time.Duration // for the chunks of others, at the end
	mine   int           // chunks that worker 0 ran
	all    int
}

const (
	crewWindow  = 20 * time.Millisecond // of jobs, for a decision
	crewRest    = time.Second           // of a worker, at first
	crewRestMax = 8 * time.Second       // and after it was let go many times in a row
	// crewMargin is how much better the estimate must be, in percent.
	crewMargin = 10
)

func newCrew(size int) crew { return crew{size: size, active: size, rest: crewRest} }

// resting tells whether the time must be looked at, because a worker may return.
func (c *crew) resting() bool { return c.active < c.size }

// observe takes a job into account and sets active for the next one.
func (c *crew) observe(now time.Duration, j jobTime) {
	if c.resting() && now >= c.back {
		c.active++
		c.seen, c.since, c.back = jobTime{}, now, now+c.rest
		return
	}
	c.seen.wall += j.wall
	c.seen.waited += j.waited
	c.seen.mine += j.mine
	c.seen.all += j.all
	if c.seen.wall < crewWindow {
		return
	}
	s := c.seen
	c.seen = jobTime{}
	if c.active == 1 || s.mine == 0 {
		return
	}
	// All chunks at worker 0's pace, shared among one worker less.
	without := float64(s.wall-s.waited) * float64(s.all) / float64(s.mine) / float64(c.active-1)
	if without*(100+crewMargin)/100 > float64(s.wall) {
		if now-c.since > c.rest {
			c.rest = crewRest // it has been going well for as long as a worker would rest
		}
		return
	}
	c.active--
	c.back = now + c.rest
	c.rest = min(2*c.rest, crewRestMax)
}
