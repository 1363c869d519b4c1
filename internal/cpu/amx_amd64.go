package cpu

// amxKernels is the assembly of level AMX: that of AVX512VNNI, but for products of block formats with many rows.
func amxKernels() *assembly {
	a := avx512Kernels()
	a.amx = [kindCount]func(*blockCall){
		kindQ8:    blocksQ8AMX,
		kindQ4:    blocksQ4AMX,
		kindQ5:    blocksQ5AMX,
		kindN4:    blocksN4AMX,
		kindM4:    blocksM4AMX,
		kindQ8Min: blocksQ8MinAMX,
		kindQ4Min: blocksQ4MinAMX,
		kindQ5Min: blocksQ5MinAMX,
		kindQ8K:   blocksQ8KAMX,
		kindQ4K:   blocksQ4KAMX,
		kindQ5K:   blocksQ5KAMX,
		kindB6K:   blocksB6KAMX,
		kindQ6K:   blocksQ6KAMX,
	}
	for k := range a.amxFrom {
		a.amxFrom[k] = 9
	}
	a.amxFrom[kindQ4] = 8
	a.unpackFrom = 3*tileRows + 1
	a.peakInts, a.peakBytes = peakIntsAMX, 1024
	return a
}
