package main

// cpuid asks this processor.
func cpuid(leaf, part uint32) (a, b, c, d uint32)

// Bits and leaves of Intel's Software Developer's Manual, volume 2, CPUID.
const (
	leafFeatures = 7
	leafTiles    = 0x1d
	leafMultiply = 0x1e

	bitAMXTile = 1 << 24 // of EDX of part 0 of leafFeatures
	bitAMXInt8 = 1 << 25
)

// cpuidAMX answers as this processor would if it had AMX-TILE and AMX-INT8.
func cpuidAMX(leaf, part uint32) (a, b, c, d uint32) {
	a, b, c, d = cpuid(leaf, part)
	switch {
	case leaf == 0:
		a = max(a, leafMultiply)
	case leaf == leafFeatures && part == 0:
		d |= bitAMXTile | bitAMXInt8
	case leaf == leafTiles && part == 0:
		a = 1 // the last palette
	case leaf == leafTiles && part == 1: // palette 1: 8 KiB, 1 KiB a tile; 64 bytes a row, 8 tiles; 16 rows
		a, b, c, d = 1024<<16|8192, 8<<16|64, 16, 0
	case leaf == leafMultiply && part == 0: // 16 rows, 64 bytes
		b = 64<<8 | 16
	}
	return a, b, c, d
}
