package cpu

import "fmt"

// KVShape is the shape of a key-value cache.
type KVShape struct {
	Layers, KVHeads, HeadDim int
	BlockSize                int // tokens: 8, 16 or 32
}

// Seq is a run of rows of one sequence: consecutive positions, each row being a token whose key and value are written
// and whose query attends to all positions up to its own.
type Seq struct {
	Blocks []int32 // of the whole sequence, in order; covers Pos + Rows tokens
	First  int     // row of the first token
	Rows   int
	Pos    int // position of the first token
}

// KV is the memory of a key-value cache: blocks of BlockSize tokens, each one range of bytes over all layers
// (docs/arithmetic.md §8), outside the Go heap.
//
//	[block][layer][kv head][tile of 16 tokens]{K transposed [HeadDim][16]f16, V [16][HeadDim]f16}
//
// Blocks of 8 tokens have one tile of 8. The tokens of a block that were never written hold zeros or what an earlier
// owner left; nobody computes with them.
type KV struct {
	shape  KVShape
	blocks int
	memory []byte

	tile       int // tokens of a tile
	tileElems  int
	headElems  int
	layerElems int
	blockElems int
}

// NewKV allocates a cache and touches its memory, so that no step has to wait for pages.
func NewKV(shape KVShape, blocks int) (*KV, error) {
	if shape.BlockSize != 8 && shape.BlockSize != 16 && shape.BlockSize != 32 {
		return nil, fmt.Errorf("kv cache: block size %d, want 8, 16 or 32", shape.BlockSize)
	}
	if shape.Layers < 1 || shape.KVHeads < 1 || blocks < 1 || shape.HeadDim < 16 || shape.HeadDim%16 != 0 {
		return nil, fmt.Errorf("kv cache: %d layers, %d heads of %d, %d blocks: want at least one of each, heads a multiple of 16",
			shape.Layers, shape.KVHeads, shape.HeadDim, blocks)
	}
	kv := &KV{shape: shape, blocks: blocks, tile: min(shape.BlockSize, lanes)}
	kv.tileElems = 2 * kv.tile * shape.HeadDim
	kv.headElems = kv.tileElems * (shape.BlockSize / kv.tile)
	kv.layerElems = kv.headElems * shape.KVHeads
	kv.blockElems = kv.layerElems * shape.Layers
	memory, err := Alloc(blocks * kv.BlockBytes())
	if err != nil {
		return nil, fmt.Errorf("kv cache of %d blocks: %w", blocks, err)
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 0
	}
	kv.memory = memory
	return kv, nil
}

// Close frees the memory.
func (kv *KV) Close() error { return Free(kv.memory) }

// Shape is the shape the cache was made with.
func (kv *KV) Shape() KVShape { return kv.shape }

// Blocks is the number of blocks.
func (kv *KV) Blocks() int { return kv.blocks }

// BlockBytes is the size of a block.
func (kv *KV) BlockBytes() int { return 2 * kv.blockElems }

// BlockBytes is the size of a block of such a cache.
func (s KVShape) BlockBytes() int { return 2 * 2 * s.BlockSize * s.HeadDim * s.KVHeads * s.Layers }

// Block is the memory of one block.
func (kv *KV) Block(id int32) []byte {
	return kv.memory[int(id)*kv.BlockBytes():][:kv.BlockBytes():kv.BlockBytes()]
}

// tileAt returns the keys and the values of the tile that holds position pos, which lies in the given block.
func (kv *KV) tileAt(layer, head int, block int32, pos int) (k, v []byte) {
	at := int(block)*kv.blockElems + layer*kv.layerElems + head*kv.headElems
	at += pos % kv.shape.BlockSize / kv.tile * kv.tileElems
	half := kv.tileElems // bytes
	return kv.memory[2*at:][:half:half], kv.memory[2*at+half:][:half:half]
}

// WriteKV stores keys and values of the rows of seqs, rounded to half precision. Row r of k and of v begins at
// r·stride with KVHeads × HeadDim values.
func (d *Device) WriteKV(kv *KV, layer int, seqs []Seq, k, v []float32, stride int) {
	d.kvWrite = kvWriteJob{d: d, kv: kv, layer: layer, seqs: seqs, k: k, v: v, stride: stride}
	chunks := 0
	for _, s := range seqs {
		chunks += s.chunks()
	}
	if few := 2 * d.Threads(); chunks < few && chunks == len(seqs) { // a few rows: less work than to share them
		for i := range seqs {
			d.kvWrite.write(0, &seqs[i], 0, seqs[i].Rows)
		}
		return
	}
	d.pool.do(chunks, &d.kvWrite)
}

// chunks is the number of pieces of 16 positions that the rows lie in; a tile of the cache has one writer.
func (s *Seq) chunks() int { return (s.Pos+s.Rows-1)/lanes - s.Pos/lanes + 1 }

// kvWriteJob has a chunk for each piece of each sequence.
type kvWriteJob struct {
	d      *Device
	kv     *KV
	layer  int
	seqs   []Seq
	k, v   []float32
	stride int
}

func (j *kvWriteJob) run(worker, chunk int) {
	i := 0
	for ; chunk >= j.seqs[i].chunks(); i++ {
		chunk -= j.seqs[i].chunks()
	}
	s := &j.seqs[i]
	first := (s.Pos/lanes + chunk) * lanes
	j.write(worker, s, max(0, first-s.Pos), min(s.Rows, first+lanes-s.Pos))
}

// write stores rows from first to before end of a sequence.
func (j *kvWriteJob) write(worker int, s *Seq, first, end int) {
	kv, dim := j.kv, j.kv.shape.HeadDim
	halves := uint16s(bytesOf(j.d.buffer(worker, (dim+1)/2)))
	for r := first; r < end; r++ {
		pos := s.Pos + r
		slot := pos % kv.tile
		for head := range kv.shape.KVHeads {
			keyBytes, valueBytes := kv.tileAt(j.layer, head, s.Blocks[pos/kv.shape.BlockSize], pos)
			keys, values := uint16s(keyBytes), uint16s(valueBytes)
			at := (s.First+r)*j.stride + head*dim
			j.d.kernels.halves(values[slot*dim:][:dim], j.v[at:][:dim])
			j.d.kernels.halves(halves[:dim], j.k[at:][:dim])
			for n, x := range halves[:dim] {
				keys[n*kv.tile+slot] = x
			}
		}
	}
}
