package cpu

import (
	"errors"
	"time"
)

// Peak is what all workers of a device together can do at best, measured.
type Peak struct {
	GopsInt  float64 `json:"int8_gigaops_per_second"`  // 10⁹ multiplications and additions of bytes a second
	GopsReal float64 `json:"float_gigaops_per_second"` // the same of float32
	GBps     float64 `json:"gigabytes_per_second"`     // 10⁹ bytes read from memory a second
}

// peakBytes is what each worker reads: more than the caches hold of it.
const peakBytes = 256 << 20

// MeasurePeak measures for about a second. Level Generic has no peak worth its name.
func (d *Device) MeasurePeak() (Peak, error) {
	a := d.assembly()
	if a == nil {
		return Peak{}, errors.New("measure peak: plain Go has no loops for it")
	}
	memory, err := Alloc(peakBytes * d.Threads())
	if err != nil {
		return Peak{}, err
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	const loops = 100_000 // of 12 vector operations
	ops := float64(2 * 12 * loops * d.Threads() * a.peakLanes)
	p := Peak{
		GopsInt:  ops * a.peakBytes / d.fastest(func(int) { a.peakInts(loops) }),
		GopsReal: ops / d.fastest(func(int) { a.peakFloats(loops) }),
		GBps: float64(len(memory)) / d.fastest(func(worker int) {
			const piece = 1 << 20 // the collector waits for no call
			for at := 0; at < peakBytes; at += piece {
				a.peakRead(&memory[worker*peakBytes+at], piece)
			}
		}),
	}
	return p, Free(memory)
}

// fastest returns the shortest of some times in nanoseconds that all workers take for f, each once.
func (d *Device) fastest(f func(part int)) float64 {
	best := time.Duration(1<<63 - 1)
	for range 8 {
		start := time.Now()
		d.Run(d.Threads(), func(_, part int) { f(part) })
		best = min(best, time.Since(start))
	}
	return float64(best)
}
