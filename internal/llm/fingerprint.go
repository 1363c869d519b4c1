package llm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/xxh3"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/kv"
)

// kvVersion changes when the same model, tokens and layout give other bytes: when the arithmetic contract does
// (docs/arithmetic.md), or the place of a value within a block.
const kvVersion = "quire kv 1"

// fingerprint names all that decides what the bytes of a KV block mean, other than its tokens: the model's file, metadata and
// every weight, and the layout. It reads the whole file, as loading did just before.
func fingerprint(f *gguf.File, shape cpu.KVShape, groups []kv.Group) (chunk.Fingerprint, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return chunk.Fingerprint{}, fmt.Errorf("fingerprint: %w", err)
	}
	defer file.Close()
	h := sha256.New()
	fmt.Fprintf(h, "%s f16 layers %d heads %d dim %d block %d\n", kvVersion, shape.Layers, shape.KVHeads, shape.HeadDim, shape.BlockSize)
	if len(groups) > 0 { // which layers make a group follows from the model and these
		fmt.Fprintf(h, "groups %v\n", groups)
	}
	if _, err := io.CopyN(h, file, f.DataStart); err != nil { // metadata and the table of tensors
		return chunk.Fingerprint{}, fmt.Errorf("fingerprint: %w", err)
	}
	for i := range f.Tensors {
		sum := xxh3.Hash128(f.Tensors[i].Data)
		h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, sum.Hi), sum.Lo))
	}
	return chunk.Fingerprint(h.Sum(nil)), nil
}
