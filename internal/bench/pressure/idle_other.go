//go:build !unix

package pressure

import "time"

// idleCPU is not measured on this system.
func idleCPU(time.Duration) float64 { return 0 }
