package sample

import (
	"fmt"

	"github.com/quire-ai/quire/internal/cpu"
)

// chunkSize is the number of logits that share a greatest one, and a partial sum of the draw.
const chunkSize = 256

// row is logits to choose from. The greatest of each chunk says which chunks need not be looked at: a row has a hundred
// thousand logits, and few of them are near the greatest.
type row struct {
	logits []float32
	tops   []float32 // [chunk]
}

// chunk returns the logits of chunk i and the index of the first.
func (r *row) chunk(i int) (logits []float32, start int) {
	start = i * chunkSize
	return r.logits[start:min(start+chunkSize, len(r.logits))], start
}

// reset makes r the row of logits and returns the first of the greatest, or an error that names one which is not a
// finite number.
func (r *row) reset(logits []float32, work cpu.Logits) (item, error) {
	r.logits, r.tops = logits, r.tops[:0]
	best := -1
	for start := 0; start < len(logits); start += chunkSize {
		chunk := logits[start:min(start+chunkSize, len(logits))]
		top := work.Greatest(chunk)
		if top != top {
			for i, value := range chunk {
				if value-value != 0 {
					return item{}, fmt.Errorf("logit of token %d is %v", start+i, value)
				}
			}
		}
		if r.tops = append(r.tops, top); best < 0 || top > r.tops[best] {
			best = len(r.tops) - 1
		}
	}
	chunk, start := r.chunk(best)
	i := 0
	for chunk[i] != r.tops[best] {
		i++
	}
	return item{index: int32(start + i), value: chunk[i]}, nil
}
