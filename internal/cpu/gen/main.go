// Command gen writes the assembly of package cpu: go generate ./internal/cpu runs it in that package's folder. A test
// proves that the committed files are what it writes.
//
// Each kernel is described where it is emitted: which registers hold what, how many operations it spends on a block,
// and what bounds it. The plain Go functions of package cpu say what the kernels compute.
package main

import (
	"fmt"
	"os"
)

func main() {
	for name, text := range generate() {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the files' contents by name.
func generate() map[string][]byte {
	return map[string][]byte{
		"blocks_amx_amd64.s":      blocksAMX(),
		"blocks_neon_arm64.s":     blocksNEON(),
		"floats_neon_arm64.s":     floatsNEON(),
		"peak_neon_arm64.s":       peakNEON(),
		"blocks_avx512_amd64.s":   blocksAVX512(),
		"blocks_avx2_amd64.s":     blocksAVX2(),
		"floats_avx2_amd64.s":     floats(avx2),
		"rows_avx2_amd64.s":       rows(avx2),
		"logits_avx2_amd64.s":     logits(avx2),
		"logits_avx512_amd64.s":   logits(avx512),
		"softmax_avx2_amd64.s":    softmax(avx2),
		"quantize_avx2_amd64.s":   quantize(avx2),
		"peak_amx_amd64.s":        peakAMX(),
		"peak_avx2_amd64.s":       peak(avx2),
		"peak_avx512_amd64.s":     peak(avx512),
		"unpack_avx2_amd64.s":     unpack(avx2),
		"unpack_avx512_amd64.s":   unpack(avx512),
		"floats_avx512_amd64.s":   floats(avx512),
		"rows_avx512_amd64.s":     rows(avx512),
		"softmax_avx512_amd64.s":  softmax(avx512),
		"quantize_avx512_amd64.s": quantize(avx512),
	}
}
