package bench

import (
	"math"
	"math/rand/v2"
	"time"
)

// arrivals returns when each of n requests is sent, from the start of the benchmark. The gaps are Gamma distributed with
// shape burstiness: 1 makes a Poisson process, less makes bursts, more makes the gaps even. Without a rate all are sent
// at once. As in vllm bench serve the times are stretched to end at n/rate, so that the rate asked for is the rate sent.
func arrivals(r *rand.Rand, n int, rate, burstiness float64) []time.Duration {
	at := make([]time.Duration, n)
	if math.IsInf(rate, 1) || rate <= 0 || n == 0 {
		return at
	}
	times := make([]float64, n)
	sum := 0.0
	for i := range times {
		sum += gamma(r, burstiness)
		times[i] = sum
	}
	stretch := float64(n) / rate / sum
	for i, t := range times {
		at[i] = time.Duration(t * stretch * float64(time.Second))
	}
	return at
}

// gamma draws from the Gamma distribution with the given shape and scale 1 (Marsaglia and Tsang, "A simple method for
// generating gamma variables", 2000). Shapes below 1 are drawn from shape+1 and a power of a uniform number.
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(1-r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - r.Float64(); math.Log(u) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
