//go:build invariants || race

package invariant

// Enabled tells whether costly audits run: true under the build tags invariants and race.
const Enabled = true
