package cpu

// neonKernels is level NEON: SDOT for Q8 and Q4, FMLA for floats and with them attention. The rest is plain Go.
func neonKernels() sparse {
	return sparse{products: &assembly{
		blocks: [kindCount]func(*blockCall){
			kindQ8: blocksQ8NEON,
			kindQ4: blocksQ4NEON,
		},
		floats: [kindCount]func(*floatCall){
			kindF32:  floatsF32NEON,
			kindF16:  floatsF16NEON,
			kindBF16: floatsBF16NEON,
		},
		blockHeights: sameHeights([]int{1, 2, 3, 4}),
		floatHeights: []int{1, 2, 3, 4},
		together:     func(int) int { return 1 },

		peakInts:   peakIntsNEON,
		peakFloats: peakFloatsNEON,
		peakRead:   peakReadNEON,
		peakLanes:  4,
		peakBytes:  4,
	}}
}
