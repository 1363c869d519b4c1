package sample

import "math/bits"

// philox is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a
// random function of a counter and a key, without state. Constants are those of the paper and of Random123.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	const (
		multiplier0 = 0xD2511F53
		multiplier1 = 0xCD9E8D57
		weyl0       = 0x9E3779B9 // golden ratio
		weyl1       = 0xBB67AE85 // sqrt(3) - 1
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(multiplier0, counter[0])
		hi1, lo1 := bits.Mul32(multiplier1, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return counter
}

// Uniform returns the random number in [0, 1) of a seed and a position: 53 bits of Philox, keyed by the seed.
func Uniform(seed uint64, position int) float64 {
	p := uint64(position)
	r := philox([4]uint32{uint32(p), uint32(p >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return float64((uint64(r[1])<<32|uint64(r[0]))>>11) * 0x1p-53
}
