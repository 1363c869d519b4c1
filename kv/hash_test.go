package kv

import (
	"encoding/hex"
	"testing"
)

// TestChainVectors holds the hashes to vectors made with python3-cbor2 and hashlib, seed "0": vLLM's sha256_cbor.
func TestChainVectors(t *testing.T) {
	var tokens []int32
	for i := range int32(32) {
		tokens = append(tokens, i)
	}
	h := Hasher{Root: RootHash("0")}
	plain := Chain{}
	plain.Extend(&h, tokens, 16)
	salted := Chain{Salt: "salt"}
	salted.Extend(&h, tokens, 16)
	for _, c := range []struct {
		name string
		got  Hash
		want string
	}{
		{"root", h.Root, "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e"},
		{"block 0", plain.Hashes[0], "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c"},
		{"block 1", plain.Hashes[1], "fedd9e4abebebbe6f6cf96b682f08d316063fe2f22a5c552192dd62904fcccac"},
		{"block 0 salted", salted.Hashes[0], "ba548bc465821c2e9b6a60ed95bf1a7bf56d08e438e8bcd7758f29086c085ab8"},
	} {
		if got := hex.EncodeToString(c.got[:]); got != c.want {
			t.Errorf("%s = %s; want %s", c.name, got, c.want)
		}
	}
}

// TestWire holds the number of block 0 of the vectors, as vLLM's events have it.
func TestWire(t *testing.T) {
	h := Hasher{Root: RootHash("0")}
	var c Chain
	c.Extend(&h, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 16)
	if got := c.Hashes[0].Wire(); got != 12687895063098490012 {
		t.Errorf("Wire() = %d; want 12687895063098490012", got)
	}
}

func TestChainExtendIsIncremental(t *testing.T) {
	tokens := []int32{0, 23, 24, 255, 256, 65535, 65536, 151935, 7, 8}
	h := Hasher{Root: RootHash("0")}
	whole, grown := Chain{LoRA: "a"}, Chain{LoRA: "a"}
	whole.Extend(&h, tokens, 3)
	for n := range tokens {
		grown.Extend(&h, tokens[:n+1], 3)
	}
	if len(whole.Hashes) != 3 || len(grown.Hashes) != 3 {
		t.Fatalf("%d and %d hashes; want 3 full blocks of 10 tokens", len(whole.Hashes), len(grown.Hashes))
	}
	for i := range whole.Hashes {
		if whole.Hashes[i] != grown.Hashes[i] {
			t.Errorf("block %d: hash depends on how the chain grew", i)
		}
	}
}
