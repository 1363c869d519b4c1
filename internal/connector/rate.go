package connector

import (
	"sync"
	"time"
)

// rate is a running mean of the time a unit of work takes, weighted towards the recent past. It may be used concurrently.
type rate struct {
	mu      sync.Mutex
	seconds float64 // per unit; 0 before the first measurement
}

// rateWeight is the weight of a new measurement: the last dozen or so make up most of the mean.
const rateWeight = 0.15

func (r *rate) add(units int, d time.Duration) {
	if units <= 0 || d <= 0 {
		return
	}
	x := d.Seconds() / float64(units)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seconds == 0 {
		r.seconds = x
		return
	}
	r.seconds += rateWeight * (x - r.seconds)
}

func (r *rate) perUnit() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seconds
}
