// Package cache measures the KV cache and the tiers behind it: what it is worth to know a prefix (Run), what the tiers cost
// when they bring nothing (Overhead), what a shared store that hangs costs (Pause), and how much of real traffic they hold
// (Trace).
package cache
