// Package sim runs the real scheduler without a model: over recorded traces, whose decisions it compares step by step.
//
// A recorded run says what a scheduler was given (requests, operations, a connector's behaviour) and what it decided.
// Replay drives package sched through the same events with a toy in place of the model, whose tokens are a formula, so
// that the outputs never depend on scheduling and every difference is a difference of decisions.
package sim
