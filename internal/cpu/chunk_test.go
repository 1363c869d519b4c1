package cpu

import "testing"

func TestPanelsPerChunk(t *testing.T) {
	for _, c := range []struct{ panels, threads, want int }{
		{1, 2, 1},
		{36, 2, 3},   // SmolLM2-135M: 6 chunks for each of two workers, not 5 and 4
		{60, 2, 6},   // 5 and 5
		{192, 2, 8},  // 12 and 12
		{3072, 2, 8}, // the output head
		{36, 16, 1},
	} {
		if got := panelsPerChunk(c.panels, c.threads); got != c.want {
			t.Errorf("panelsPerChunk(%d, %d) = %d, want %d", c.panels, c.threads, got, c.want)
		}
	}
}
