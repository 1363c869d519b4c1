package sim

import (
	"testing"
)

// TestSeeds plays made-up scenarios of every profile.
func TestSeeds(t *testing.T) {
	count := uint64(60)
	if testing.Short() {
		count = 10
	}
	for _, profile := range Profiles()[1:] {
		t.Run(profile, func(t *testing.T) {
			for seed := range count {
				h, err := Scenario(seed, profile)
				if err != nil {
					t.Fatal(err)
				}
				if out := Run(h, false); out.Fault != "" {
					t.Errorf("quire sim run --profile %s --seed %d: %s", profile, seed, out.Fault)
				}
			}
		})
	}
}
