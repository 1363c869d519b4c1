package cpu

// avx2Kernels is the assembly of level AVX2: ymm registers, VPMADDUBSW, F16C.
func avx2Kernels() *assembly {
	return &assembly{
		blocks: [kindCount]func(*blockCall){
			kindQ8:    blocksQ8AVX2,
			kindQ4:    blocksQ4AVX2,
			kindQ5:    blocksQ5AVX2,
			kindN4:    blocksN4AVX2,
			kindM4:    blocksM4AVX2,
			kindQ8Min: blocksQ8MinAVX2,
			kindQ4Min: blocksQ4MinAVX2,
			kindQ5Min: blocksQ5MinAVX2,
			kindQ8K:   blocksQ8KAVX2,
			kindQ4K:   blocksQ4KAVX2,
			kindQ5K:   blocksQ5KAVX2,
			kindB6K:   blocksB6KAVX2,
			kindQ6K:   blocksQ6KAVX2,
		},
		floats: [kindCount]func(*floatCall){
			kindF32:  floatsF32AVX2,
			kindF16:  floatsF16AVX2,
			kindBF16: floatsBF16AVX2,
		},
		blockHeights: heightsAVX2(),
		floatHeights: []int{1, 2, 3, 4, 6},
		together:     func(int) int { return 1 },
		// Not of Q4 and Q5: the product of bytes takes 128 off each, and more operations than that of nibbles.
		unpackCall: [kindCount]func(*unpackCall){
			kindQ4Min: unpack4AVX2, kindQ4K: unpack4AVX2,
			kindQ5Min: unpack5AVX2, kindQ5K: unpack5AVX2,
			kindQ6K: unpack6AVX2,
			kindN4:  unpackN4AVX2,
		},
		unpackFrom:   2*tileRows + 1, // three tiles
		quantizeCall: quantizeAVX2,
		softmaxCall:  softmaxAVX2,
		greatestCall: greatestAVX2,
		weightsCall:  weightsAVX2,
		sumSquares:   sumSquaresAVX2,
		weigh:        weighAVX2,
		siluCall:     siluAVX2,
		geluCall:     geluAVX2,
		rotatePairs:  rotatePairsAVX2,
		rotateHalves: rotateHalvesAVX2,
		addCall:      addAVX2,
		scaleCall:    scaleAVX2,
		softcapCall:  softcapAVX2,
		halvesCall:   halvesAVX2,
		mergeCall:    mergeAVX2,
		mixCall:      mixAVX2,
		divideCall:   divideAVX2,

		peakInts:   peakIntsAVX2,
		peakFloats: peakFloatsAVX2,
		peakRead:   peakReadAVX2,
		peakLanes:  8,
		peakBytes:  4,
	}
}

// heightsAVX2 has products of up to four rows, but for Q6_K, whose halves need the registers.
func heightsAVX2() [kindCount][]int {
	all := sameHeights([]int{1, 2, 3, 4})
	all[kindQ6K] = []int{1, 2}
	all[kindB6K] = all[kindQ6K]
	return all
}
