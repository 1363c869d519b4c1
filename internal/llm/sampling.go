package llm

import (
	"cmp"
	"fmt"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/sample"
)

// recommended reads how the model's authors would sample: the keys general.sampling.*, which converters copy from a model's
// generation_config.json (llama.cpp, LLM_KV_GENERAL_SAMPLING_*), or else what the catalog says of the model. What is not
// given is neutral; what is out of range is an error.
func recommended(m *gguf.Metadata, known catalog.Sampling) (sample.Params, error) {
	p := sample.Default()
	p.Temperature = cmp.Or(known.Temperature, p.Temperature)
	p.TopP = cmp.Or(known.TopP, p.TopP)
	for _, field := range []struct {
		key   string
		value *float64
	}{
		{"general.sampling.temp", &p.Temperature},
		{"general.sampling.top_p", &p.TopP},
		{"general.sampling.min_p", &p.MinP},
		{"general.sampling.penalty_repeat", &p.RepetitionPenalty},
	} {
		v, err := m.FloatOr(field.key, *field.value)
		if err != nil {
			return p, err
		}
		*field.value = v
	}
	k, err := m.IntOr("general.sampling.top_k", int64(known.TopK))
	if err != nil {
		return p, err
	}
	p.TopK = int(max(k, 0))
	if err := p.Validate(1); err != nil {
		return p, fmt.Errorf("general.sampling: %w", err)
	}
	return p, nil
}
