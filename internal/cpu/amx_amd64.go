package cpu

// amxKernels is the assembly of level AMX: that of AVX512VNNI, but for products of block formats with many rows.
func amxKernels() *assembly {
	a := avx512Kernels()
	a.amx = [kindCount]func(*blockCall){
		kindQ8:    blocksQ8AMX,
		kindQ8Min: blocksQ8MinAMX,
		kindQ8K:   blocksQ8KAMX,
		kindB6K:   blocksB6KAMX,
	}
	a.amxFrom = 9
	a.unpackFrom = a.amxFrom // the other kinds
	a.peakInts, a.peakBytes = peakIntsAMX, 1024
	return a
}
