package server

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
)

// seeds gives each request that names no seed one of its own. With a fixed key the same requests in the same order get
// the same seeds.
type seeds struct {
	key uint64
	n   *atomic.Uint64
}

func newSeeds(key uint64) seeds {
	if key == 0 {
		var random [8]byte
		rand.Read(random[:])
		key = binary.LittleEndian.Uint64(random[:])
	}
	return seeds{key: key, n: new(atomic.Uint64)}
}

// next is the seed of the next request.
func (s seeds) next() uint64 { return mix(s.key + mix(s.n.Add(1))) }

// derive is the seed of one choice of a request. The first has the request's own, so that it does not depend on n.
func derive(seed uint64, index int) uint64 {
	if index == 0 {
		return seed
	}
	return mix(seed + mix(uint64(index)))
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): near inputs give unlike outputs.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
