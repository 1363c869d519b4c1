package llm

import (
	"fmt"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/sample"
)

// recommended reads how the file's author would sample: the keys general.sampling.*, which converters copy from a model's
// generation_config.json (llama.cpp, LLM_KV_GENERAL_SAMPLING_*). What is not given
// is neutral; what is out of range is an error.
func recommended(m *gguf.Metadata) (sample.Params, error) {
	p := sample.Default()
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
	k, err := m.IntOr("general.sampling.top_k", 0)
	if err != nil {
		return p, err
	}
	p.TopK = int(max(k, 0))
	if err := p.Validate(1); err != nil {
		return p, fmt.Errorf("general.sampling: %w", err)
	}
	return p, nil
}
