package cpu

// avx512Kernels is the assembly of level AVX512VNNI: zmm registers, VPDPBUSD.
func avx512Kernels() *assembly {
	return &assembly{
		blocks: [kindCount]func(*blockCall){
			kindQ8:    blocksQ8AVX512,
			kindQ4:    blocksQ4AVX512,
			kindQ5:    blocksQ5AVX512,
			kindN4:    blocksN4AVX512,
			kindM4:    blocksM4AVX512,
			kindQ8Min: blocksQ8MinAVX512,
			kindQ4Min: blocksQ4MinAVX512,
			kindQ5Min: blocksQ5MinAVX512,
			kindQ8K:   blocksQ8KAVX512,
			kindQ4K:   blocksQ4KAVX512,
			kindQ5K:   blocksQ5KAVX512,
			kindB6K:   blocksB6KAVX512,
			kindQ6K:   blocksQ6KAVX512,
		},
		floats: [kindCount]func(*floatCall){
			kindF32:  floatsF32AVX512,
			kindF16:  floatsF16AVX512,
			kindBF16: floatsBF16AVX512,
		},
		blockHeights: sameHeights([]int{1, 2, 3, 4, 6, 8, 12, 16}),
		floatHeights: []int{1, 2, 3, 4, 6, 8, 12, 16, 24},
		together: func(rows int) int {
			switch {
			case rows <= 4:
				return 4
			case rows <= 6:
				return 2
			}
			return 1
		},
		unpackCall: [kindCount]func(*unpackCall){
			kindQ4: unpack4AVX512, kindQ4Min: unpack4AVX512, kindQ4K: unpack4AVX512,
			kindQ5: unpack5AVX512, kindQ5Min: unpack5AVX512, kindQ5K: unpack5AVX512,
			kindQ6K: unpack6AVX512,
			kindN4:  unpackN4AVX512,
		},
		unpackFrom:   2*tileRows + 1, // three tiles
		quantizeCall: quantizeAVX512,
		softmaxCall:  softmaxAVX512,
		greatestCall: greatestAVX512,
		weightsCall:  weightsAVX512,
		sumSquares:   sumSquaresAVX512,
		weigh:        weighAVX512,
		siluCall:     siluAVX512,
		geluCall:     geluAVX512,
		rotatePairs:  rotatePairsAVX512,
		rotateHalves: rotateHalvesAVX512,
		addCall:      addAVX512,
		scaleCall:    scaleAVX512,
		softcapCall:  softcapAVX512,
		halvesCall:   halvesAVX512,
		mergeCall:    mergeAVX512,
		mixCall:      mixAVX512,
		divideCall:   divideAVX512,

		peakInts:   peakIntsAVX512,
		peakFloats: peakFloatsAVX512,
		peakRead:   peakReadAVX512,
		peakLanes:  16,
		peakBytes:  4,
	}
}
