package main

import "fmt"

// Registers of the softmax kernel. With 256 bits a tile of 16 scores is two vectors, and so are the sums.
const (
	rTop    = 0 // greatest scores by lane, then the greatest in all lanes
	rIndex  = 1 // positions of the lanes
	rLo     = 2
	rHi     = 3
	rScale  = 4
	rLimit  = 5
	rSums   = 6 // and 7
	rScore  = 8 // and three temporary ones from 9
	rMask   = 12
	rBefore = 13 // 256 bits: lo - 1
)

// softmax writes the softmax of one query's scores over a part of the context (docs/arithmetic.md §8): scores at
// lo ≤ i < hi of 256 become e^(score·scale - greatest), the others 0. Two passes over the tiles that hold lo to hi:
// the first scales and finds the greatest score, the second takes 13 operations for the exponential.
func softmax(v vector) []byte {
	f := newFile("Softmax of a part of the context.")
	k := &softmaxKernel{rowKernels{f, v, constants{f, f.constants}}, 512 / v.bits}
	k.text("softmax"+v.suffix, 8, "func softmax"+v.suffix+"(c *softmaxCall)")
	k.op("MOVQ", "c+0(FP)", "BX")
	k.op("MOVQ", "softmaxCall_scores(BX)", "SI")
	k.op("MOVQ", "softmaxCall_hi(BX)", "R8")
	k.op("MOVQ", "softmaxCall_lo(BX)", "R9")
	k.broadcast("softmaxCall_lo(BX)", rLo)
	k.broadcast("softmaxCall_hi(BX)", rHi)
	k.op("VBROADCASTSS", "softmaxCall_scale(BX)", k.reg(rScale))
	k.op("VBROADCASTSS", "softmaxCall_limit(BX)", k.reg(rLimit))
	k.op("MOVL", "softmaxCall_limit(BX)", "R10")
	k.op("ANDQ", "$-16", "R9")
	k.greatest()
	k.exponentials()
	k.clear()
	k.ret()
	for i := 0; i < 64; i += 8 {
		fmt.Fprintf(&f.data, "DATA c_lanes<>+%d(SB)/8, $%#016x\n", i, uint64(i/4+1)<<32|uint64(i/4))
	}
	f.data.WriteString("GLOBL c_lanes<>(SB), RODATA|NOPTR, $64\n")
	return f.finish()
}

type softmaxKernel struct {
	rowKernels
	parts int // vectors of a tile
}

// broadcast emits the copying of an integer into all lanes.
func (k *softmaxKernel) broadcast(from string, to int) {
	k.op("VPBROADCASTD", from, k.reg(to))
}

// mask emits the mask of the lanes within lo and hi, for part i of the tile at DX: K2, or rMask.
func (k *softmaxKernel) mask(i int) {
	k.op("VMOVD", "DX", "X12")
	k.op("VPBROADCASTD", "X12", k.reg(rIndex))
	k.op("VPADDD", fmt.Sprintf("c_lanes<>+%d(SB)", i*k.vector.bytes()), k.reg(rIndex), k.reg(rIndex))
	if k.bits == 512 {
		k.op("VPCMPD", "$5", k.reg(rLo), k.reg(rIndex), "K2")
		k.op("VPCMPD", "$1", k.reg(rHi), k.reg(rIndex), "K2", "K2")
		return
	}
	k.op("VPCMPGTD", k.reg(rIndex), k.reg(rLo), k.reg(rMask)) // lo > index
	k.op("VPCMPGTD", k.reg(rIndex), k.reg(rHi), k.reg(rBefore))
	k.op("VPANDN", k.reg(rBefore), k.reg(rMask), k.reg(rMask))
}

// greatest emits the first pass.
func (k *softmaxKernel) greatest() {
	top, score := k.reg(rTop), k.reg(rScore)
	infinity := k.float("minusInfinity", 0xff800000)
	k.op("VMOVUPS", infinity, top)
	loop, plain := k.label("greatest"), make([]string, k.parts)
	k.op("MOVQ", "R9", "DX")
	k.place(loop)
	for i := range k.parts {
		at := fmt.Sprintf("%d(SI)(DX*4)", i*k.vector.bytes())
		k.mask(i)
		k.op("VMULPS", at, k.reg(rScale), score)
		plain[i] = k.label("plain")
		k.op("TESTL", "R10", "R10")
		k.op("JZ", plain[i])
		k.capped(score, k.reg(rLimit), k.reg(9), k.reg(10), k.reg(11))
		k.place(plain[i])
		k.op("VMOVUPS", score, at)
		if k.bits == 512 {
			k.op("VMAXPS", top, score, "K2", top)
		} else {
			k.op("VMOVUPS", infinity, k.reg(9))
			k.op("VBLENDVPS", k.reg(rMask), score, k.reg(9), score)
			k.op("VMAXPS", top, score, top)
		}
	}
	k.op("ADDQ", "$16", "DX")
	k.op("CMPQ", "DX", "R8")
	k.op("JLT", loop)
	if k.bits == 512 {
		k.op("VEXTRACTF64X4", "$1", z(rTop), y(9))
		k.op("VMAXPS", y(9), y(rTop), y(rTop))
	}
	k.op("VEXTRACTF128", "$1", y(rTop), x(9))
	k.op("VMAXPS", x(9), x(rTop), x(rTop))
	k.op("VPERMILPS", "$0x4e", x(rTop), x(9))
	k.op("VMAXPS", x(9), x(rTop), x(rTop))
	k.op("VPERMILPS", "$0xb1", x(rTop), x(9))
	k.op("VMAXPS", x(9), x(rTop), x(rTop))
	k.op("VMOVSS", x(rTop), "softmaxCall_top(BX)")
	k.op("VBROADCASTSS", x(rTop), top)
}

// exponentials emits the second pass.
func (k *softmaxKernel) exponentials() {
	score, e := k.reg(rScore), k.reg(9)
	for i := range k.parts {
		k.zero(k.file, k.reg(rSums+i))
	}
	loop := k.label("exponentials")
	k.op("MOVQ", "R9", "DX")
	k.place(loop)
	for i := range k.parts {
		at := fmt.Sprintf("%d(SI)(DX*4)", i*k.vector.bytes())
		k.op("VMOVUPS", at, score)
		k.op("VSUBPS", k.reg(rTop), score, score)
		k.exp(score, e, k.reg(10), k.reg(11))
		k.mask(i)
		if k.bits == 512 {
			k.op("VMOVAPS.Z", e, "K2", e)
		} else {
			k.op("VANDPS", k.reg(rMask), e, e)
		}
		k.op("VMOVUPS", e, at)
		k.op("VADDPS", e, k.reg(rSums+i), k.reg(rSums+i))
	}
	k.op("ADDQ", "$16", "DX")
	k.op("CMPQ", "DX", "R8")
	k.op("JLT", loop)
	for i := range k.parts {
		k.op("VMOVUPS", k.reg(rSums+i), fmt.Sprintf("softmaxCall_sums+%d(BX)", i*k.vector.bytes()))
	}
}

// clear emits zeros for the tiles before the first and, DX being at their first, after the last.
func (k *softmaxKernel) clear() {
	zero := k.reg(rScore)
	k.zero(k.file, zero)
	store := func(index string) {
		for i := range k.parts {
			k.op("VMOVUPS", zero, fmt.Sprintf("%d(SI)(%s*4)", i*k.vector.bytes(), index))
		}
	}
	after, before, done, test := k.label("after"), k.label("before"), k.label("done"), k.label("test")
	k.op("JMP", test)
	k.place(after)
	store("DX")
	k.op("ADDQ", "$16", "DX")
	k.place(test)
	k.op("CMPQ", "DX", "$256")
	k.op("JLT", after)
	k.place(before)
	k.op("SUBQ", "$16", "R9")
	k.op("JLT", done)
	store("R9")
	k.op("JMP", before)
	k.place(done)
}
