package main

// peak writes loops that do nothing but what bounds the other kernels, to measure the machine with: integer dot
// products, multiply-adds, and reading memory.
func peak(v vector) []byte {
	f := newFile("Loops that measure what this processor can do at best.")
	const independent = 12 // more than latency × throughput of either operation
	f.text("peakInts"+v.suffix, 8, `peakInts multiplies 4 bytes with 4 in each 32-bit lane, 12 times n.
func peakInts(n int)`)
	f.op("MOVQ", "n+0(FP)", "CX")
	again := f.label("again")
	f.place(again)
	for i := range independent {
		if v.bits == 512 {
			f.op("VPDPBUSD", v.reg(14), v.reg(15), v.reg(i))
		} else {
			f.op("VPMADDUBSW", v.reg(14), v.reg(15), v.reg(i))
		}
	}
	f.op("DECQ", "CX")
	f.op("JNZ", again)
	f.ret()

	f.text("peakFloats"+v.suffix, 8, `peakFloats multiplies and adds in each 32-bit lane, 12 times n.
func peakFloats(n int)`)
	f.op("MOVQ", "n+0(FP)", "CX")
	for i := range 16 {
		v.zero(f, v.reg(i))
	}
	again = f.label("again")
	f.place(again)
	for i := range independent {
		f.op("VFMADD231PS", v.reg(14), v.reg(15), v.reg(i))
	}
	f.op("DECQ", "CX")
	f.op("JNZ", again)
	f.ret()

	f.text("peakRead"+v.suffix, 16, `peakRead reads n bytes, a multiple of 256.
func peakRead(p *byte, n int)`)
	f.op("MOVQ", "p+0(FP)", "SI")
	f.op("MOVQ", "n+8(FP)", "CX")
	again = f.label("again")
	f.place(again)
	for i := 0; i < 256; i += 64 {
		f.op("PREFETCHT1", mem(8192+i, "SI"))
	}
	for i := 0; i < 256; i += v.bytes() {
		f.op("VMOVUPS", mem(i, "SI"), v.reg(i/v.bytes()))
	}
	f.op("ADDQ", "$256", "SI")
	f.op("SUBQ", "$256", "CX")
	f.op("JNZ", again)
	f.ret()
	return f.finish()
}

// peakAMX writes the integer loop for AMX: products of whole tiles, 16 × 64 bytes by 64 × 16.
func peakAMX() []byte {
	f := newFile("The loop that measures what this processor can do at best with AMX.")
	f.frame("peakIntsAMX", 128, 8, `peakIntsAMX multiplies 1024 bytes with 1024 in each of 16 lanes, 12 times n.
func peakIntsAMX(n int)`)
	f.op("LEAQ", "63(SP)", "R14")
	f.op("ANDQ", "$-64", "R14")
	f.op("VPXORD", z(0), z(0), z(0))
	f.op("VMOVDQU64", z(0), "(R14)")
	f.op("MOVB", "$1", "(R14)") // palette 1
	f.op("MOVQ", "$0x0040004000400040", "AX")
	f.op("MOVQ", "AX", "16(R14)") // 64 bytes of a row
	f.op("MOVQ", "AX", "24(R14)")
	f.op("MOVQ", "$0x1010101010101010", "AX")
	f.op("MOVQ", "AX", "48(R14)") // 16 rows
	f.tileConfig("R14", 0)
	f.op("MOVQ", "n+0(FP)", "CX")
	again := f.label("again")
	f.place(again)
	for i := range 12 {
		f.tileDot(tileA, tileB, tileSum+i%4)
	}
	f.op("DECQ", "CX")
	f.op("JNZ", again)
	f.tileRelease()
	f.ret()
	return f.finish()
}
